"""Stop words: words of a query that say nothing about what it looks for, by language.

The lists are short and written by hand, in the surface form of the analyser: without case and accents, contractions
reduced to their first word. A language without a list has no stop words, which costs little precision. Stop words are
removed from queries only. Documents keep them, so that a phrase such as "to be or not to be" can be found.
"""

from __future__ import annotations

_EN = """
a an the this that these those some any each every either neither both all such no nor not only own same so than too
very just also again further then once here there now ever never always i me my mine myself we us our ours ourselves
you your yours yourself yourselves he him his himself she her hers herself it its itself they them their theirs
themselves one ones someone something anyone anything everyone everything am is are was were be been being do does did
doing done have has had having can could shall should will would may might must ought let lets get got gets getting
and or but if because as until while although though whether unless since of at by for with about against between into
through during before after above below to from up down in out on off over under within without upon per via among
across toward towards along onto when where why how what which who whom whose whatever whichever whoever me please
tell show give find ok okay yes etc eg ie
"""

_DE = """
der die das den dem des ein eine einer eines einem einen kein keine keiner keines keinem keinen dieser diese dieses
diesem diesen jener jene jenes jenem jenen jeder jede jedes jedem jeden alle aller alles allem allen man ich mich mir
mein meine meiner meines meinem meinen du dich dir dein deine deiner deines deinem deinen er ihn ihm sein seine seiner
seines seinem seinen sie ihr ihre ihrer ihres ihrem ihren es wir uns unser unsere unserer unseres unserem unseren euch
euer eure eurer eures eurem euren sich selbst bin bist ist sind seid war warst waren wart gewesen werde wirst wird
werden werdet wurde wurden worden habe hast hat haben habt hatte hatten gehabt kann kannst konnen konnt konnte konnten
muss musst mussen musste mussten soll sollst sollen sollte sollten will willst wollen wollte wollten darf durfen mag
mogen mochte mochten und oder aber denn weil dass ob wenn als wie so auch nur noch nicht nichts schon sehr doch mal
hier dort dann da nun also in im ins an am ans auf aus bei beim bis durch fur gegen mit nach neben ohne seit uber um
unter von vom vor wahrend wegen zu zum zur zwischen wer wen wem wessen was wann wo woher wohin warum wieso weshalb
welche welcher welches welchem welchen wieviel
"""

_FR = """
le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs
je j me m moi tu te t toi il elle on se s soi lui nous vous ils elles eux y en suis es est sommes etes sont etait
etaient ete etre sera seront serait ai as a avons avez ont avait avaient eu avoir aura auront aurait fait faire fais
peut peuvent pouvoir doit doivent devoir et ou mais donc or ni car si que qu comme quand lorsque puisque parce afin a
dans par pour sur sous avec sans chez vers entre contre depuis pendant avant apres jusque ne n pas plus non aussi tres
bien tout toute tous toutes meme ici la alors encore deja c ca cela ceci qui quoi quel quelle quels quelles lequel
laquelle lesquels lesquelles dont comment pourquoi combien
"""

_ES = """
el la los las lo un una unos unas al del este esta esto estos estas ese esa eso esos esas aquel aquella aquello
aquellos aquellas mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra vuestros vuestras yo me ti te
se nos os le les ella ellas ellos nosotros vosotros usted ustedes soy eres es somos sois son era eras eran fue fui
fueron ser sido siendo sea estoy estas estamos estan estaba estaban estar he has ha hemos han habia habian haber hay
hace hacer hizo tiene tienen tener tenia puede pueden poder debe deben y e o u pero sino ni si que como cuando porque
pues aunque mientras a ante bajo con contra de desde durante en entre hacia hasta para por segun sin sobre tras no muy
mas menos ya tambien tampoco solo todo toda todos todas otro otra otros otras mismo misma aqui alli ahora entonces
quien quienes cual cuales donde adonde cuanto cuanta cuantos cuantas cuyo cuya
"""

_IT = """
il lo la l i gli le un uno una del dello della dei degli delle al allo alla ai agli alle dal dallo dalla dai dagli
dalle nel nello nella nei negli nelle sul sullo sulla sui sugli sulle col coi questo questa questi queste quello
quella quelli quelle quel quei mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro
vostra vostri vostre loro io me mi tu te ti lui lei egli ella noi ci voi vi essi esse si se ne sono sei e siamo siete
era eri erano fu furono essere stato stata stati state sia ho hai ha abbiamo avete hanno aveva avevano avere avuto fa
fare fatto puo possono potere deve devono dovere ed o od ma anche che se come quando perche mentre pero dunque quindi
a ad di d da in con su per tra fra sotto sopra senza dopo prima verso contro durante non piu meno molto poco tutto
tutta tutti tutte altro altra altri altre ancora gia solo qui li ora poi c chi cosa quale quali dove quanto quanta
quanti quante cui
"""

_PT = """
o a os as um uma uns umas do da dos das no na nos nas ao aos pelo pela pelos pelas num numa este esta isto estes estas
esse essa isso esses essas aquele aquela aquilo aqueles aquelas meu minha meus minhas teu tua teus tuas seu sua seus
suas nosso nossa nossos nossas eu me mim tu te ti ele ela eles elas voce voces vos se lhe lhes sou es e somos sao era
eram foi fui foram ser sido seja estou esta estamos estao estava estavam estar tenho tem temos tinha tinham ter teve
ha havia haver faz fazer fez pode podem poder deve devem dever e ou mas nem que se como quando porque pois embora
enquanto a ante com contra de desde durante em entre para perante por segundo sem sob sobre ate apos nao muito mais
menos ja tambem so todo toda todos todas outro outra outros outras mesmo mesma aqui ali la agora entao ainda quem qual
quais onde aonde quanto quanta quantos quantas cujo cuja
"""

_NL = """
de het een der des den t deze dit die dat zulke elk elke ieder iedere alle alles geen mijn jouw je zijn haar ons onze
uw hun ik me mij jij jou u hij hem zij ze wij we jullie zich zelf men er ben bent is zijn was waren geweest word wordt
worden werd werden geworden heb hebt heeft hebben had hadden gehad kan kun kunt kunnen kon konden zal zult zullen zou
zouden moet moeten moest moesten mag mogen mocht wil wilt willen wilde doe doet doen deed en of maar want omdat dat
als dan toen terwijl hoewel indien in op aan uit bij door voor na naar van met over om onder tot tegen tussen tijdens
zonder sinds te ter niet niets ook nog al wel zo zeer heel hier daar nu dus toch eens reeds meer wie wat wanneer waar
waarom hoe welk welke wiens hoeveel
"""

#: Language code to its stop words; a code that is missing has none.
STOP_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {"en": _EN, "de": _DE, "fr": _FR, "es": _ES, "it": _IT, "pt": _PT, "nl": _NL}.items()
}
