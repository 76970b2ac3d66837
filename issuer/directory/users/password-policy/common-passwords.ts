/**
 * What everybody tries first. Guessers take a word and decorate it: `Password1!`, `p@ssw0rd`, `summer2024`. So the list
 * is of words, written for this project, and a password is common when it is one of them in a usual decoration; that
 * makes many thousands of passwords of some hundred words. Those of actual breaches: `breached/`.
 */
const words = `
password passwort passw passwd pass pwd motdepasse contrasena contraseña clave parola haslo heslo wachtwoord senha salasana
losenord lösenord adgangskode jelszo sifre parol geslo lozinka passord sandi katasandi admin administrator root user guest
test tester testing demo default changeme changeit letmein letmeinnow welcome welkom willkommen bienvenue bienvenido benvenuto
login logon signin access secret geheim secreto topsecret private master superuser superman batman spiderman ironman
wonderwoman starwars startrek skywalker vader pokemon pikachu naruto mario zelda minecraft fortnite roblox warcraft
counterstrike matrix gandalf frodo hobbit potter hermione hogwarts dragon monkey tiger lion panther eagle falcon phoenix
wolf bear shark dolphin butterfly kitten kitty puppy hamster bunny chicken turtle spider scorpion cobra viper mustang
ferrari porsche mercedes corvette camaro yamaha harley kawasaki honda toyota bmw audi
qwerty qwertz azerty qwertyuiop qwertzuiop azertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm yxcvbnm qazwsx qazwsxedc qweasd
qweasdzxc wasd asdasd qweqwe zaqwsx zaqxsw abcdef abcdefg abcabc abcd aaaaaa xxxxxx iloveyou iloveu loveyou loveme lovely
love lover forever together babygirl babyboy baby honey sweetheart sweety darling angel princess prince queen king
prinzessin princesa principessa engel schatz schatzi liebe ichliebedich hallo hello hola bonjour ciao salut goodbye jetaime
tequiero teamo tiamo amore amor amour soleil doudou chouchou loulou coucou sunshine sonnenschein sommer summer winter spring
autumn herbst frühling fruehling verano invierno primavera otoño january february march april june july august september
october november december januar februar monday tuesday wednesday thursday friday saturday sunday montag freitag samstag
sonntag football soccer baseball basketball hockey tennis golf cricket rugby fussball futbol futebol liverpool chelsea
arsenal manchester manutd barcelona realmadrid juventus bayern schalke dortmund borussia celtic rangers yankees cowboys
lakers steelers packers eagles michael jennifer jessica ashley amanda nicole daniel thomas robert andrew joshua matthew
jordan hunter buster charlie maggie bailey tigger snoopy garfield ginger pepper shadow max rocky lucky buddy cookie coffee
chocolate cheese banana orange apple cherry peaches strawberry pumpkin muffin cupcake sugar candy snickers pizza whiskey
vodka computer internet server network system samsung nokia iphone android google facebook youtube twitter instagram
microsoft windows linux ubuntu oracle cisco apache database
michelle melissa samantha elizabeth victoria stephanie alexander alexandra christian christine sebastian anthony william
richard patrick george edward steven benjamin nicholas jonathan maria anna laura julia sarah sandra andrea martin
stefan markus tobias claudia sabine katharina pierre nathalie camille juliette marseille carlos alejandro fernando
francesco giuseppe alessandro antonio giovanni valentina daniela gabriel gabriela isabella olivia sophia natasha
summerlove trustno trustnoone nothing whatever fuckyou fuckoff fuck asshole bitch bullshit pussy dick sex sexy hottie
porn boobs gay penis scheisse arschloch merde putain cabron pendejo mierda kurwa dupa jesus jesuschrist christ heaven
blessed blessing faith grace godisgood allah bismillah muhammad buddha ganesha krishna angels devil lucifer satan diablo
freedom liberty america american canada london england australia scotland ireland germany deutschland berlin hamburg
munich münchen muenchen köln koeln france paris espana españa madrid italia roma milano mexico brasil brazil argentina
colombia india pakistan bangladesh indonesia jakarta china beijing japan tokyo sakura russia moscow poland polska warszawa
mother father mommy daddy family familia familie brother sister friend friends children student teacher school college
university business company office manager service support security secure backup temp temporary public office
money dollar million millionaire rich lucky lottery winner champion victory power energy thunder lightning storm
hurricane rainbow diamond crystal silver golden gold platinum emerald pearl purple yellow green blue black white red
pink metallica nirvana slipknot eminem beatles elvis madonna beyonce rihanna rockyou rockstar guitar music dancer dance
ninja samurai pirate warrior knight soldier killer hacker assassin sniper gangster gangsta playboy player gamer cheater
flower flowers rose daisy lily violet jasmine lavender sunflower garden ocean beach island mountain river forest
snowball snowman christmas halloween easter birthday holiday vacation travel adventure dreams dreamer believe success
hope peace smile smiley happy happiness funny crazy awesome amazing perfect beautiful gorgeous pretty special
fantasy magic wizard merlin mystic galaxy universe planet saturn jupiter mercury venus apollo zeus hercules achilles
spartan trojan gladiator caesar napoleon einstein newton mozart picasso shakespeare
abcxyz xyz zzz blink blahblah blabla bla asdqwe trewq ytrewq poiuy poiuytrewq lkjhgfdsa mnbvcxz
letmeout openup opensesame open sesame enter entrar passpass passme mypassword mypass thepassword nopassword ourpassword
yourpassword newpassword oldpassword password password passwordpassword adminadmin rootroot testtest useruser qwertyqwerty
пароль йцукен йцукенг привет любовь наташа максим марина андрей александр солнышко
`
const common: ReadonlySet<string> = new Set(words.split(/\s+/).filter((word) => word !== ''))

/** What letters are usually replaced by. */
const disguises: Readonly<Record<string, string>> = {
  '@': 'a',
  '4': 'a',
  '3': 'e',
  '€': 'e',
  '1': 'i',
  '!': 'i',
  '0': 'o',
  '5': 's',
  $: 's',
  '7': 't',
}

/** More around a word is no decoration. */
const longestDecoration = 8

const undisguised = (text: string): string => text.replace(/[@43€1!05$7]/gu, (character) => disguises[character]!)
const bare = (text: string): string => {
  const core = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  return [...text].length - [...core].length <= longestDecoration ? core : text
}

/**
 * What is left of a text without its usual decoration: digits and signs around it, capitals, and letters that were
 * replaced by what looks like them.
 */
export const coreOf = (text: string): string => {
  const lower = text.normalize('NFKC').toLowerCase()
  return undisguised(bare(lower)).replace(/[\s._-]/gu, '')
}

/** One of the words, in a usual decoration. */
export const isCommonPassword = (password: string): boolean => {
  const lower = password.normalize('NFKC').toLowerCase()
  const joined = lower.replace(/[\s._-]/gu, '')
  // A disguise at either end looks like decoration, and the other way round: both readings count.
  return [coreOf(password), bare(joined), undisguised(joined), bare(undisguised(joined))].some((core) => {
    const half = core.slice(0, core.length / 2)
    return common.has(core) || (half + half === core && common.has(half))
  })
}
