import { afterAll, describe, expect, test } from 'vitest'
import type { SignInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import {
  type ExperiencePages,
  type ExperiencePerson,
  freshName,
  startExperience,
  type TestExperience,
} from '../../support/experience.ts'

/**
 * Random orders of calls, over people with and without factors and several settings. A model of its own, which knows
 * the settings and which credentials were right, says who may have a session and whose password or factors may be other
 * ones; whatever the issuer gives beyond that fails, and so does every answer of 500. A failure prints its seed and the
 * shortest calls that still fail.
 */

const sequences = Number(process.env['EXPERIENCE_SEQUENCES'] ?? 20)
const callsEach = 24
const firstSeed = Number(process.env['EXPERIENCE_SEED'] ?? 1)

type Event = 'SignIn' | 'Register' | 'ForgotPassword'
type Category = 'knowledge' | 'mailbox' | 'app' | 'paper' | 'passkey'

const methods = (password: boolean, verificationCode: boolean): SignInExperience['signIn'] => ({
  methods: (['username', 'email', 'phone'] as const).map((identifier) => ({
    ...{ identifier, password, isPasswordPrimary: true },
    verificationCode: verificationCode && identifier !== 'username',
  })),
})
const passkeySignIn = { enabled: true, showPasskeyButton: true, allowAutofill: true }
const lenient = { sentinelPolicy: { maxAttempts: 1_000, lockoutDuration: 1 } }

const variants: Record<string, Partial<SignInExperience>> = {
  'passwords alone': { signIn: methods(true, false) },
  'codes alone, no recovery, no registration': {
    signIn: methods(false, true),
    signInMode: 'SignIn',
    forgotPasswordMethods: [],
  },
  'registration alone': { signInMode: 'Register' },
  'factors of those who have them': {
    mfa: { factors: ['Totp', 'BackupCode'], policy: 'NoPrompt' },
    signIn: methods(true, true),
  },
  'factors for everybody': { mfa: { factors: ['Totp', 'BackupCode'], policy: 'Mandatory' }, passkeySignIn },
  'factors as one likes': {
    mfa: { factors: ['Totp', 'EmailVerificationCode', 'WebAuthn'], policy: 'PromptAtSignInAndSignUp' },
    passkeySignIn,
  },
  'passkeys for next time': { passkeySignIn, signIn: methods(true, true) },
}

interface Subject extends ExperiencePerson {
  name: string
  isSuspended: boolean
  totp: string | undefined
  backupCodes: string[]
  device: ReturnType<TestExperience['authenticator']> | undefined
  /** Said that they do not want a passkey now. */
  putsPasskeyOff: boolean
}

/** A call as data: it is understood whatever came before, so that every part of a sequence is one too. */
interface Move {
  call: keyof typeof moves
  page: number
  person: number
  /** What else there is to choose. */
  choice: number
}

interface Known {
  id: string
  /** What would be right, and whose it is. */
  code?: string
  email?: string
  secret?: string
}

/** What the model knows of one interaction. */
interface Facts {
  event: Event
  /** Who was proven, by what. */
  subject: Subject | undefined
  proven: Set<Category>
  /** `email` code or one-time token of whom, in a reset. */
  resets: Subject | undefined
  registers: { username: string; password: string } | undefined
  password: string | undefined
  /** Factors confirmed here. */
  bound: Set<'app' | 'paper' | 'passkey'>
  device: Subject['device']
  isIdentified: boolean
  /** Nothing more is offered to whoever has added something, or put a second factor off. */
  isAskedEnough: boolean
  putsPasskeyOff: boolean
  sent: Known | undefined
  totp: Known | undefined
  paper: Known | undefined
  verified: string[]
}

const untouched = (event: Event): Facts => ({
  ...{ event, proven: new Set(), bound: new Set(), verified: [] },
  ...{ subject: undefined, resets: undefined, registers: undefined, password: undefined },
  ...{ sent: undefined, totp: undefined, paper: undefined, device: undefined },
  ...{ isIdentified: false, isAskedEnough: false, putsPasskeyOff: false },
})

interface World {
  experience: TestExperience
  settings: SignInExperience
  people: Subject[]
  pages: { page: ExperiencePages; facts: Facts }[]
  /** Sessions that were given. */
  given: number
  log: string[]
}

class Broken extends Error {}
const demand = (holds: boolean, what: string) => {
  if (!holds) throw new Broken(what)
}

// --- The model: what the settings allow ---

const isOn = ({ settings }: World, identifier: string, how: 'password' | 'verificationCode') =>
  settings.signIn.methods.some((method) => method.identifier === identifier && method[how])

const heldCategories = ({ settings }: World, subject: Subject): Category[] => {
  const { factors } = settings.mfa
  const held: Category[] = []
  if (factors.includes('Totp') && subject.totp) held.push('app')
  if (factors.includes('BackupCode') && subject.backupCodes.length > 0) held.push('paper')
  if (factors.includes('EmailVerificationCode')) held.push('mailbox')
  if (factors.includes('WebAuthn') && subject.device) held.push('passkey')
  return held
}

/** Why there may be no session now; undefined: there may. */
const forbids = (world: World, facts: Facts): string | undefined => {
  const { settings } = world
  if (facts.event === 'ForgotPassword') return 'a reset opens no session'
  if (facts.event === 'Register') {
    if (settings.signInMode === 'SignIn') return 'nobody may register'
    if (!facts.registers) return 'nothing was said of somebody new'
    return settings.mfa.policy === 'Mandatory' && facts.bound.size < 2 ? 'factors are demanded' : undefined
  }
  const { subject, proven } = facts
  if (!subject || proven.size === 0) return 'nobody was proven'
  if (settings.signInMode === 'Register') return 'nobody may sign in'
  if (subject.isSuspended) return `${subject.name} is suspended`
  const isStrong = proven.has('passkey') || proven.size > 1
  const others = heldCategories(world, subject).filter((category) => !proven.has(category))
  if (!isStrong && others.length > 0) return `${subject.name} has factors that were not asked for`
  if (settings.mfa.policy === 'Mandatory') {
    if (!isStrong && !facts.bound.has('app')) return 'a factor is demanded'
    if (subject.backupCodes.length === 0 && !facts.bound.has('paper')) return 'backup codes are demanded'
  }
  const isAskedEnough = facts.isAskedEnough || facts.bound.size > 0 || facts.putsPasskeyOff || subject.putsPasskeyOff
  // Until `/identification` nobody has said that the browser can make passkeys.
  const isOffered = settings.passkeySignIn.enabled && facts.isIdentified && !subject.device && !isAskedEnough
  return isOffered ? `${subject.name} was not offered a passkey` : undefined
}

// --- The calls ---

interface Turn {
  world: World
  page: ExperiencePages
  facts: Facts
  person: Subject
  choice: number
}

type Answered = Awaited<ReturnType<ExperiencePages['post']>>

const say = async ({ world, page }: Turn, method: string, path: string, body?: unknown): Promise<Answered> => {
  const answer = await page.call(method, path, body)
  world.log.push(`${method} ${path} ${JSON.stringify(body) ?? ''} → ${answer.status} ${answer.body?.code ?? ''}`)
  demand(answer.status < 500, `${method} ${path} → ${answer.status}`)
  return answer
}

const prove = ({ world, facts }: Turn, subject: Subject, category: Category, id: string) => {
  if (facts.subject !== subject) {
    Object.assign(facts, { subject, proven: new Set(), bound: new Set(), password: undefined })
    Object.assign(facts, { isAskedEnough: false, putsPasskeyOff: false })
  }
  facts.proven.add(category)
  facts.verified.push(id)
  demand(world.people.includes(subject), 'somebody was proven whom nobody knows')
}

const events: Event[] = ['SignIn', 'SignIn', 'Register', 'ForgotPassword']
const at = <Item>(items: readonly Item[], index: number): Item => items[index % items.length]!

const gaveSession = async (turn: Turn, location: string | undefined) => {
  const { world, facts } = turn
  const code = location === undefined ? null : new URL(location).searchParams.get('code')
  if (code === null) return
  const why = forbids(world, facts)
  demand(why === undefined, `a session, although ${why}`)
  const tokens = await world.experience.flow.redeem(world.experience.client, code)
  demand(tokens.status === 200, 'the code is good for nothing')
  const { sub } = JSON.parse(Buffer.from(tokens.body.id_token.split('.')[1], 'base64url').toString())
  world.given++
  if (facts.event === 'Register') {
    demand(!world.people.some(({ id }) => id === sub), 'a registration made a session of somebody known')
  } else {
    demand(sub === facts.subject?.id, 'the session is of somebody else')
    if (facts.password !== undefined) facts.subject!.password = facts.password
    if (facts.bound.has('app')) facts.subject!.totp = facts.totp?.secret
    if (facts.bound.has('paper')) facts.subject!.backupCodes = (facts.paper?.code ?? '').split(' ')
    if (facts.bound.has('passkey')) facts.subject!.device ??= facts.device
    facts.subject!.putsPasskeyOff ||= facts.putsPasskeyOff
  }
  await renew(world, turn.page)
}

/** What an interaction is for before anybody has said anything. */
const firstEvent = ({ settings }: World): Event => (settings.signInMode === 'Register' ? 'Register' : 'SignIn')

/** Another sign-in in a browser that nobody has used. */
const renew = async (world: World, page: ExperiencePages) => {
  const index = world.pages.findIndex((known) => known.page === page)
  world.pages[index] = { page: await world.experience.pages(), facts: untouched(firstEvent(world)) }
}

const submit = async (turn: Turn) => {
  const { page, facts, world } = turn
  const { status, body } = await say(turn, 'POST', '/submit')
  if (status !== 200) return
  if (body === '') {
    const { resets, password } = facts
    demand(facts.event === 'ForgotPassword' && resets !== undefined && password !== undefined, 'a reset of nothing')
    demand(world.settings.forgotPasswordMethods === null, 'a reset, although there is no recovery')
    resets!.password = password!
    Object.assign(facts, untouched('SignIn'))
    return
  }
  await gaveSession(turn, (await page.browser.send(body.redirectTo)).location)
}

const anyId = ({ world, facts, choice }: Turn): string =>
  choice % 4 === 0 ? (at(world.pages, choice).facts.verified.at(-1) ?? 'x') : (facts.verified.at(-1) ?? 'x')

const confirmTotp = async (turn: Turn) => {
  const { world, facts, choice } = turn
  if (!facts.totp) return
  world.experience.clock.now += 60_000
  const isRight = choice % 4 !== 0
  const code = isRight ? world.experience.totp(facts.totp.secret!) : '000000'
  const { status } = await say(turn, 'POST', '/verification/totp/verify', { code, verificationId: facts.totp.id })
  if (status !== 200) return
  demand(isRight, 'a wrong code confirmed an authenticator app')
  demand(facts.event !== 'SignIn' || isWhole(turn), 'a factor was bound before everything was proven')
  facts.bound.add('app')
}

/** Everything that the person has was asked for. */
const isWhole = ({ world, facts }: Turn): boolean => {
  const { subject, proven } = facts
  if (!subject || proven.size === 0) return false
  return proven.has('passkey') || proven.size > 1 || heldCategories(world, subject).every((held) => proven.has(held))
}

const moves = {
  async begin(turn: Turn) {
    const interactionEvent = at(events, turn.choice)
    const { status } = await say(turn, 'PUT', '', { interactionEvent })
    if (status === 204) Object.assign(turn.facts, untouched(interactionEvent))
  },
  async change(turn: Turn) {
    const interactionEvent = at(events, turn.choice)
    const { status } = await say(turn, 'PUT', '/interaction-event', { interactionEvent })
    if (status === 204 && interactionEvent !== turn.facts.event) Object.assign(turn.facts, untouched(interactionEvent))
  },
  async password(turn: Turn) {
    const { person, choice, world } = turn
    const identifier = at(
      [
        { type: 'username', value: person.username },
        { type: 'email', value: person.email },
      ],
      choice,
    )
    const isRight = choice % 5 !== 0
    const password = isRight ? person.password : 'not the password'
    const { status, body } = await say(turn, 'POST', '/verification/password', { identifier, password })
    if (status !== 200) return
    demand(isRight, 'a wrong password was right')
    if (isOn(world, identifier.type, 'password')) prove(turn, person, 'knowledge', body.verificationId)
    else turn.facts.verified.push(body.verificationId)
  },
  async sendCode(turn: Turn) {
    const { world, facts, person, choice } = turn
    const identifier = { type: 'email', value: person.email }
    const interactionEvent = choice % 6 === 0 ? at(events, choice) : facts.event
    const { status, body } = await say(turn, 'POST', '/verification/verification-code', {
      identifier,
      interactionEvent,
    })
    if (status !== 200) return
    demand(interactionEvent === facts.event, 'a code for something else')
    facts.sent = { id: body.verificationId, code: await world.experience.codeTo(person.email), email: person.email }
  },
  async verifyCode(turn: Turn) {
    const { world, facts, choice } = turn
    const sent = choice % 5 === 0 ? at(world.pages, choice).facts.sent : facts.sent
    if (!sent) return
    const isRight = choice % 3 !== 0
    const code = isRight ? sent.code : 'abcdef'
    const identifier = { type: 'email', value: sent.email }
    const answer = { identifier, verificationId: sent.id, code }
    const { status } = await say(turn, 'POST', '/verification/verification-code/verify', answer)
    if (status !== 200) return
    demand(isRight && sent === facts.sent, 'a code that was wrong, or of another sign-in, was right')
    // Then it may have been for another address of theirs.
    if (facts.isIdentified) facts.isAskedEnough = true
    const owner = world.people.find(({ email }) => email === sent.email)!
    if (facts.event === 'ForgotPassword') {
      if (facts.resets !== owner) facts.password = undefined
      facts.resets = owner
      facts.verified.push(sent.id)
    } else if (facts.event === 'SignIn' && isOn(world, 'email', 'verificationCode')) {
      prove(turn, owner, 'mailbox', sent.id)
    } else facts.verified.push(sent.id)
  },
  async mailedFactor(turn: Turn) {
    const { world, facts } = turn
    const sent = await say(turn, 'POST', '/verification/mfa-verification-code', { identifierType: 'email' })
    if (sent.status !== 200) return
    demand(facts.subject !== undefined, 'a second factor of nobody')
    const code = turn.choice % 4 === 0 ? 'abcdef' : await world.experience.codeTo(facts.subject!.email)
    const answer = { verificationId: sent.body.verificationId, code, identifierType: 'email' }
    const { status } = await say(turn, 'POST', '/verification/mfa-verification-code/verify', answer)
    if (status !== 200) return
    demand(code !== 'abcdef', 'a wrong code was right')
    facts.proven.add('mailbox')
  },
  async totp(turn: Turn) {
    const { world, facts, person } = turn
    if (!person.totp) return
    world.experience.clock.now += 60_000
    const code = world.experience.totp(person.totp)
    const { status } = await say(turn, 'POST', '/verification/totp/verify', { code })
    if (status !== 200) return
    demand(facts.subject === person, 'the code of somebody else was right')
    facts.proven.add('app')
  },
  async backupCode(turn: Turn) {
    const { facts, person } = turn
    const code = person.backupCodes.at(0)
    if (code === undefined) return
    const { status } = await say(turn, 'POST', '/verification/backup-code/verify', { code })
    if (status !== 200) return
    demand(facts.subject === person, 'the backup code of somebody else was right')
    person.backupCodes.shift()
    facts.proven.add('paper')
  },
  async passkey(turn: Turn) {
    const { world, person } = turn
    const isFactor = turn.choice % 2 === 0
    const path = isFactor ? '/verification/web-authn/authentication' : '/verification/sign-in-passkey/authentication'
    const identifier = { type: 'username', value: person.username }
    const asked = await say(turn, 'POST', path, isFactor ? undefined : { identifier })
    if (asked.status !== 200 || !person.device) return
    const options = { ...asked.body.authenticationOptions, allowCredentials: [] }
    const payload = person.device.get(options)
    const answer = { verificationId: asked.body.verificationId, payload }
    const { status, body } = await say(turn, 'POST', `${path}/verify`, answer)
    if (status !== 200) return
    demand(!isFactor || turn.facts.subject === person, 'the passkey of somebody else was right')
    demand(world.settings.passkeySignIn.enabled, 'a passkey, although they are off')
    prove(turn, person, 'passkey', body.verificationId)
  },
  async oneTimeToken(turn: Turn) {
    const { world, facts, person, choice } = turn
    const made = await world.experience.issuer.api('POST', '/one-time-tokens', { email: person.email })
    const other = choice % 3 === 0 ? at(world.people, choice) : person
    const identifier = { type: 'email', value: other.email }
    const { token } = made.body
    const { status, body } = await say(turn, 'POST', '/verification/one-time-token/verify', { identifier, token })
    if (status !== 200) return
    demand(other === person, 'a one-time token of somebody else was right')
    demand(facts.event !== 'ForgotPassword', 'a one-time token resets no password')
    if (facts.event === 'SignIn') prove(turn, person, 'mailbox', body.verificationId)
    else facts.verified.push(body.verificationId)
  },
  async newIdentity(turn: Turn) {
    const { facts, world } = turn
    const identity = { username: freshName(), password: 'pwd_3f1c9a7b5d2e' }
    const body = { identifier: { type: 'username', value: identity.username }, password: identity.password }
    const { status, body: answer } = await say(turn, 'POST', '/verification/new-password-identity', body)
    if (status !== 200) return
    demand(facts.event === 'Register' && world.settings.signInMode !== 'SignIn', 'a new name where none can be')
    facts.registers = identity
    facts.verified.push(answer.verificationId)
  },
  async identify(turn: Turn) {
    const verificationId = anyId(turn)
    const body = turn.choice % 5 === 0 ? {} : { verificationId }
    const { status } = await say(turn, 'POST', '/identification', body)
    if (status !== 204 && status !== 201) return
    const { event, subject, registers, resets } = turn.facts
    const isKnown = { SignIn: subject, Register: registers, ForgotPassword: resets }[event] !== undefined
    demand(isKnown, `identified without a proof (${event})`)
    turn.facts.isIdentified = true
  },
  async newTotp(turn: Turn) {
    const { status, body } = await say(turn, 'POST', '/verification/totp/secret')
    if (status !== 200) return
    turn.facts.bound.delete('app')
    turn.facts.totp = { id: body.verificationId, secret: body.secret }
    await confirmTotp(turn)
  },
  confirmTotp,
  async newBackupCodes(turn: Turn) {
    const { facts } = turn
    const { status, body } = await say(turn, 'POST', '/verification/backup-code/generate')
    if (status !== 200) return
    const kept = { type: 'BackupCode', verificationId: body.verificationId }
    if ((await say(turn, 'POST', '/profile/mfa', kept)).status !== 204) return
    demand(facts.event !== 'SignIn' || isWhole(turn), 'backup codes were bound before everything was proven')
    facts.paper = { id: body.verificationId, code: body.codes.join(' ') }
    facts.bound.add('paper')
  },
  async newPasskey(turn: Turn) {
    const { world, facts, choice } = turn
    const made = await say(turn, 'POST', '/verification/web-authn/registration')
    if (made.status !== 200 || facts.subject?.device) return
    const { mfa, passkeySignIn } = world.settings
    demand(passkeySignIn.enabled || mfa.factors.includes('WebAuthn'), 'a passkey, although they are off')
    const device = world.experience.authenticator()
    const isSeen = choice % 2 === 0
    const payload = device.create(made.body.registrationOptions, isSeen ? {} : { flags: { up: false, uv: false } })
    const { verificationId } = made.body
    const answer = { verificationId, payload }
    if ((await say(turn, 'POST', '/verification/web-authn/registration/verify', answer)).status !== 200) return
    const isByPasswordAlone = facts.event === 'SignIn' && facts.proven.has('knowledge') && facts.proven.size === 1
    demand(isSeen || (isByPasswordAlone && !mfa.factors.includes('WebAuthn')), 'a passkey of somebody who was not seen')
    demand(facts.event !== 'SignIn' || isWhole(turn), 'a passkey was bound before everything was proven')
    facts.device = device
    facts.bound.add('passkey')
  },
  async skipPasskey(turn: Turn) {
    const { status } = await say(turn, 'POST', '/profile/mfa/passkey-skipped')
    if (status !== 204) return
    demand(turn.facts.event !== 'SignIn' || isWhole(turn), 'a passkey was put off before everything was proven')
    turn.facts.putsPasskeyOff = true
  },
  async profile(turn: Turn) {
    const { facts } = turn
    const password = `pwd_${freshName()}`
    const { status } = await say(turn, 'POST', '/profile', { type: 'password', value: password })
    if (status !== 204) return
    demand(facts.event === 'Register', 'another password, although nobody has to have one')
  },
  async resetPassword(turn: Turn) {
    const { facts } = turn
    const password = `pwd_${freshName()}`
    const { status } = await say(turn, 'PUT', '/profile/password', { password })
    if (status !== 204) return
    demand(facts.event === 'ForgotPassword' && facts.resets !== undefined, 'a new password of nobody')
    facts.password = password
  },
  async skip(turn: Turn) {
    const { status } = await say(turn, 'POST', '/profile/mfa/mfa-skipped')
    if (status !== 204) return
    demand(turn.world.settings.mfa.policy.startsWith('Prompt'), 'a factor that is demanded was skipped')
    turn.facts.isAskedEnough = true
  },
  async look(turn: Turn) {
    const { status, body } = await say(turn, 'GET', '/interaction')
    if (status !== 200 || body.next.step !== 'done' || turn.facts.event === 'ForgotPassword') return
    demand(
      forbids(turn.world, turn.facts) === undefined,
      `nothing is missing, although ${forbids(turn.world, turn.facts)}`,
    )
  },
  /** Past the API, by the addresses that browsers are sent to. */
  async resume(turn: Turn) {
    const path = turn.choice % 2 === 0 ? `/oidc/auth/${turn.page.interactionId}` : `/sign-in/${turn.page.interactionId}`
    const visit = await turn.page.browser.send(path)
    turn.world.log.push(`GET ${path.slice(0, 10)}… → ${visit.status}`)
    demand(visit.status < 500, `GET ${path} → ${visit.status}`)
    await gaveSession(turn, visit.location)
  },
  submit,
}

/** What leads somewhere comes more often. */
const weights: [keyof typeof moves, number][] = [
  ...(['begin', 'change', 'mailedFactor', 'backupCode', 'passkey', 'oneTimeToken', 'confirmTotp'] as const).map(
    (call) => [call, 2] as [keyof typeof moves, number],
  ),
  ...(
    ['profile', 'resetPassword', 'skip', 'skipPasskey', 'look', 'resume', 'newBackupCodes', 'newPasskey'] as const
  ).map((call) => [call, 2] as [keyof typeof moves, number]),
  ...(['password', 'sendCode', 'verifyCode', 'totp', 'newIdentity', 'newTotp', 'submit'] as const).map(
    (call) => [call, 4] as [keyof typeof moves, number],
  ),
  ['identify', 8],
]
const bag = weights.flatMap(([call, weight]) => Array<keyof typeof moves>(weight).fill(call))

/** mulberry32 */
const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

/** Ways that lead somewhere: [call, choice]. Chance alone would find none of the longer ones. */
const ways: (readonly [keyof typeof moves, number?][])[] = [
  [['begin', 0], ['password'], ['identify'], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['totp'], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['newPasskey', 0], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['newPasskey', 1], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['totp'], ['skipPasskey'], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['backupCode'], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['mailedFactor'], ['skip'], ['submit']],
  [['begin', 0], ['password'], ['identify'], ['newTotp', 1], ['newBackupCodes'], ['submit']],
  [['begin', 0], ['sendCode', 1], ['verifyCode', 1], ['identify'], ['totp'], ['submit']],
  [['begin', 0], ['oneTimeToken'], ['identify'], ['totp'], ['submit']],
  [['begin', 0], ['passkey', 1], ['identify'], ['newBackupCodes'], ['submit']],
  [['begin', 2], ['newIdentity'], ['identify', 1], ['newTotp', 1], ['newBackupCodes'], ['skip'], ['submit']],
  [['begin', 3], ['sendCode', 1], ['verifyCode', 1], ['identify', 1], ['resetPassword'], ['submit']],
]

/** A few ways, with other calls between, of which some are about somebody else or in another tab. */
const sequenceOf = (seed: number): Move[] => {
  const random = randomOf(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const [page, person] = [below(2), below(4)]
  const stray = (call: keyof typeof moves, choice: number | undefined, odds: number): Move => ({
    call,
    page: below(odds) === 0 ? below(2) : page,
    person: below(odds) === 0 ? below(4) : person,
    choice: choice ?? below(1_000),
  })
  const sequence: Move[] = []
  while (sequence.length < callsEach) {
    for (const [call, choice] of at(ways, below(ways.length))) {
      while (below(4) === 0) sequence.push(stray(at(bag, below(bag.length)), undefined, 3))
      if (below(8) > 0) sequence.push(stray(call, choice, 12))
    }
  }
  return sequence
}

const createPeople = async (experience: TestExperience): Promise<Subject[]> => {
  const person = async (name: string, options: { isSuspended?: boolean } = {}): Promise<Subject> => ({
    ...(await experience.createPerson(options)),
    ...{ name, isSuspended: options.isSuspended === true, totp: undefined, backupCodes: [], device: undefined },
    putsPasskeyOff: false,
  })
  const [plain, strong, suspended, keyed] = [
    await person('plain'),
    await person('strong'),
    await person('suspended', { isSuspended: true }),
    await person('keyed'),
  ]
  strong.totp = await experience.addTotp(strong)
  strong.backupCodes = await experience.addBackupCodes(strong)
  keyed.device = await experience.addPasskey(keyed)
  return [plain, strong, suspended, keyed]
}

/** What is wrong, if something is. */
const run = async (world: World, sequence: readonly Move[]): Promise<string | undefined> => {
  const { experience, people } = world
  const { sql } = experience.issuer
  // Limits have tests of their own.
  await sql('DELETE FROM sign_in_failures')
  await sql('DELETE FROM message_counts')
  world.log.length = 0
  const browserless = await Promise.all([experience.pages(), experience.pages()])
  world.pages = browserless.map((page) => ({ page, facts: untouched(firstEvent(world)) }))
  const factorsOf = () =>
    sql<{ id: string; totp: number; codes: number; passkeys: number }>(
      `SELECT u.id, (SELECT count(*)::int FROM totp_secrets t WHERE t.user_id = u.id) AS totp,
         (SELECT count(*)::int FROM backup_codes b WHERE b.user_id = u.id AND b.used_at IS NULL) AS codes,
         (SELECT count(*)::int FROM passkeys p WHERE p.user_id = u.id) AS passkeys
       FROM users u WHERE u.id = ANY ($1)`,
      [people.map(({ id }) => id)],
    )
  try {
    for (const { call, page, person, choice } of sequence) {
      const place = at(world.pages, page)
      world.log.push(`[${page}] ${call} ${at(people, person).name} ${choice}`)
      await moves[call]({ world, ...place, person: at(people, person), choice })
    }
    for (const row of await factorsOf()) {
      const { name, totp, backupCodes, device } = people.find(({ id }) => id === row.id)!
      demand(row.totp === (totp === undefined ? 0 : 1), `${name} has another authenticator app`)
      demand(row.codes === backupCodes.length, `${name} has other backup codes`)
      demand(row.passkeys === (device === undefined ? 0 : 1), `${name} has other passkeys`)
    }
    return undefined
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    return error.message
  }
}

/** The calls without those that nothing depends on. */
const shrink = async (world: World, failing: readonly Move[]): Promise<readonly Move[]> => {
  let shortest = failing
  for (let size = Math.ceil(failing.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < shortest.length; start += size) {
      const shorter = shortest.filter((_, index) => index < start || index >= start + size)
      if (shorter.length < shortest.length && (await run(world, shorter)) !== undefined) {
        shortest = shorter
        start -= size
      }
    }
  }
  return shortest
}

describe('whatever is called in whatever order', () => {
  const open: TestExperience[] = []
  afterAll(() => Promise.all(open.map((experience) => experience.close())))

  const timeout = 180_000 + sequences * 2_000
  test.each(Object.entries(variants))(
    '%s: nobody gets what the settings do not allow',
    { timeout },
    async (_name, settings) => {
      const experience = await startExperience({ settings: { ...lenient, ...settings } })
      open.push(experience)
      const read = await experience.issuer.sql<{ value: SignInExperience }>(
        `SELECT value FROM settings WHERE name = 'sign-in-experience'`,
      )
      const people = await createPeople(experience)
      const world: World = { experience, settings: read[0]!.value, people, pages: [], given: 0, log: [] }
      for (let seed = firstSeed; seed < firstSeed + sequences; seed++) {
        const sequence = sequenceOf(seed)
        const broken = await run(world, sequence)
        if (broken === undefined) continue
        const shortest = await shrink(world, sequence)
        const again = await run(world, shortest)
        expect.fail(`seed ${seed}: ${broken}; shortest: ${again}\n${world.log.join('\n')}`)
      }
      // Otherwise the model was asked nothing.
      expect(world.given).toBeGreaterThan(0)
    },
  )
})
