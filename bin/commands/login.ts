import { loadConfig } from '../../platform/config.ts'
import { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { createBrowser, type Hop, hopLine } from '../../testing/browser.ts'
import { codesFrom } from '../../testing/message-codes.ts'
import { type SignedIn, SignInFailed, type SignInOptions, signIn } from '../../testing/sign-in.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { explainCommand } from '../login/explain.ts'
import { signInOnDevice } from '../login/on-device.ts'
import { askPassword, secretFile } from '../login/password.ts'
import { storedLogins } from '../login/stored-logins.ts'

/**
 * `surrogate login`: signs in whoever sits before it, in a browser of theirs, and keeps the tokens for `surrogate
 * token`. With `--user` it is the browser itself: it signs that person in over the issuer's pages and shows every step
 * and the tokens. 0 done, 1 the sign-in was refused or something is not as it should be. `surrogate login explain` says
 * why rules decide as they do.
 */
export const loginCommand = async (args: readonly string[]): Promise<number> => {
  if (args[0] === 'explain') return explainCommand(args.slice(1))
  const { values } = parseOptions(args, {
    issuer: { type: 'string', default: 'http://localhost:3001/oidc' },
    client: { type: 'string' },
    user: { type: 'string' },
    'redirect-uri': { type: 'string' },
    scope: { type: 'string' },
    resource: { type: 'string', multiple: true, default: [] },
    prompt: { type: 'string' },
    acr: { type: 'string' },
    'max-age': { type: 'string' },
    'password-file': { type: 'string' },
    'client-secret-file': { type: 'string' },
    consent: { type: 'boolean', default: false },
    'totp-secret': { type: 'string' },
    'codes-from': { type: 'string' },
    json: { type: 'boolean', default: false },
  })
  if (values.user === undefined) return loginOnDevice(values)
  const { LOGIN_PASSWORD, LOGIN_CLIENT_SECRET } = loadConfig(settings.login, process.env)
  const issuer = issuerAddress(values.issuer)
  const clientId = needed(values.client, '--client', 'the id of an application')
  const user = needed(values.user, '--user', 'a user name, e-mail address or phone number')
  const redirectUri = needed(values['redirect-uri'], '--redirect-uri', 'one that the application has registered')
  if (!URL.canParse(redirectUri)) throw new StartupError('--redirect-uri is no address.', { hint: usage })
  const { 'password-file': passwordFile, 'client-secret-file': secretFileName } = values
  const clientSecret = secretFileName === undefined ? LOGIN_CLIENT_SECRET : await secretFile(secretFileName)
  const password =
    passwordFile === undefined ? (LOGIN_PASSWORD ?? (await askPassword(user))) : await secretFile(passwordFile)
  if (password.reveal() === '') throw new StartupError('The password is empty.', { hint: usage })

  const { 'totp-secret': totpSecret, 'codes-from': codesFile } = values
  const hops: Hop[] = []
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  const onHop = (hop: Hop): void => {
    if (values.json) hops.push(hop)
    else say(hopLine(hop))
  }
  const options: SignInOptions = {
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    user,
    password,
    scope: values.scope ?? 'openid profile',
    resources: values.resource,
    parameters: { prompt: values.prompt, acr_values: values.acr, max_age: values['max-age'] },
    consent: values.consent,
    totpSecret: totpSecret === undefined ? undefined : new Secret(totpSecret),
    nextCode: codesFile === undefined ? undefined : codesFrom(codesFile),
    browser: createBrowser({ onHop }),
  }
  try {
    const signedIn = await signIn(options)
    if (values.json) say(JSON.stringify({ ok: true, hops, ...signedIn }, null, 2))
    else for (const line of resultLines(signedIn)) say(line)
    return 0
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error
    if (values.json) say(JSON.stringify({ ok: false, hops, problem: error.message }, null, 2))
    else say(`\n✗ ${error.message}`)
    return 1
  }
}

/** What belongs to the walk over the pages. */
const ofPages = ['redirect-uri', 'prompt', 'acr', 'max-age', 'password-file', 'client-secret-file'] as const

const loginOnDevice = async (
  values: Partial<Record<(typeof ofPages)[number], string>> & {
    issuer: string
    client?: string | undefined
    scope?: string | undefined
    resource: string[]
    json: boolean
  },
): Promise<number> => {
  const foreign = ofPages.find((name) => values[name] !== undefined)
  if (foreign !== undefined) throw new StartupError(`--${foreign} needs --user.`, { hint: usage })
  const address = issuerAddress(values.issuer)
  const clientId = needed(values.client, '--client', 'the id of an application with isDeviceFlow')
  const logins = storedLogins(loadConfig(settings.login, process.env))
  const say = (line: string) => void process.stderr.write(`${line}\n`)
  try {
    const login = await signInOnDevice({
      issuer: address,
      clientId,
      scope: values.scope ?? 'openid profile offline_access',
      resources: values.resource,
      tell(asked) {
        say(`Open ${asked.verification_uri} in a browser and enter the code:\n\n    ${asked.user_code}\n`)
        if (asked.verification_uri_complete) say(`Or open ${asked.verification_uri_complete} and compare it.`)
      },
      browser: createBrowser({ onHop: () => {} }),
    })
    await logins.save(login)
    const { issuer, subject } = login
    if (values.json) process.stdout.write(`${JSON.stringify({ ok: true, issuer, clientId, subject })}\n`)
    else process.stdout.write(`Signed in at ${issuer}${subject === undefined ? '' : ` as ${subject}`}.\n`)
    return 0
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error
    if (values.json) process.stdout.write(`${JSON.stringify({ ok: false, problem: error.message })}\n`)
    else say(`✗ ${error.message}`)
    return 1
  }
}

const usage = 'See surrogate login --help and docs/signing-in.md.'

const needed = (value: string | undefined, name: string, meaning: string): string => {
  if (value === undefined || value === '') throw new StartupError(`${name} is missing: ${meaning}.`, { hint: usage })
  return value
}

/** A password goes there: in the clear only on this machine. */
const issuerAddress = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new StartupError('--issuer must be an address that begins with https://.', { hint: usage })
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (url.protocol === 'http:' && !isHere)
    throw new StartupError('--issuer must be https: the password would cross the network in the clear.', {
      hint: usage,
    })
  return url
}

const resultLines = ({ tokens, idToken, accessToken }: SignedIn): string[] => [
  '',
  ...(idToken ? ['ID token, verified:', JSON.stringify(idToken, null, 2)] : []),
  ...(accessToken ? ['Access token:', JSON.stringify(accessToken, null, 2)] : []),
  'Answer of the token endpoint:',
  JSON.stringify(tokens, null, 2),
]
