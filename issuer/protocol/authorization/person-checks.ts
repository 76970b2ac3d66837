import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import { type AuthorizationRequest, prompts } from '../../interaction/authorization-request.ts'
import type { VerifyIdTokenHint } from '../../tokens/id-token-hint.ts'
import { acrs } from '../../tokens/sessions/session.ts'
import { type Asked, invalid } from './asked.ts'
import { onlyValueOf } from './authorization-parameters.ts'

/** Who is to sign in, and how. */

const words = (text: string | undefined): string[] =>
  [...new Set((text ?? '').split(' '))].filter((word) => word !== '')

export const knownPrompts = ({ parameters }: Asked) => {
  const asked = words(onlyValueOf(parameters, 'prompt'))
  const known = prompts.filter((prompt) => asked.includes(prompt))
  if (known.length < asked.length) throw invalid(`Each prompt must be one of ${prompts.join(', ')}.`)
  if (known.includes('none') && known.length > 1) throw invalid('The prompt none stands alone.')
  return { prompts: known }
}

export const wholeMaxAge = ({ parameters }: Asked) => {
  const maxAge = onlyValueOf(parameters, 'max_age')
  if (maxAge === undefined) return {}
  if (!/^\d{1,10}$/.test(maxAge)) throw invalid('The max_age must be a number of seconds, 0 or more.')
  return { maxAge: Number(maxAge) }
}

const maxLoginHint = 256

export const shortLoginHint = ({ parameters }: Asked) => {
  const loginHint = onlyValueOf(parameters, 'login_hint')
  if (loginHint !== undefined && loginHint.length > maxLoginHint)
    throw invalid(`The login_hint must be at most ${maxLoginHint} characters.`)
  return { loginHint }
}

export const ownIdTokenHint =
  (verify: VerifyIdTokenHint) =>
  async ({ parameters, client }: Asked): Promise<Partial<AuthorizationRequest>> => {
    const token = onlyValueOf(parameters, 'id_token_hint')
    if (token === undefined) return {}
    const hint = await verify(token).catch((cause: unknown) => {
      if (!(cause instanceof JwtError)) throw cause
      throw new OAuthError('invalid_request', 'The id_token_hint is no ID token of this issuer.', { cause })
    })
    if (hint.clientId !== client.id) throw invalid('The id_token_hint is of another client.')
    return { expectedUserId: hint.userId }
  }

/** The first pages that existing SDKs ask for. */
const firstScreens = [
  ...['sign_in', 'register', 'reset_password', 'single_sign_on', 'signIn'],
  ...['identifier:sign_in', 'identifier:register'],
]
const legacyScreens: Readonly<Record<string, string>> = { signUp: 'register', signIn: 'sign_in' }
const localeForm = /^[A-Za-z\d]{1,8}(-[A-Za-z\d]{1,8}){0,4}$/
const maxLocales = 10

/** What is not understood is ignored. `display`, `claims`, `claims_locales` and unknown parameters always are. */
export const wishes = ({ parameters }: Asked): Partial<AuthorizationRequest> => {
  const one = (name: string) => onlyValueOf(parameters, name)
  const screen = one('first_screen')
  const mode = one('interaction_mode') ?? ''
  const organizationId = one('organization_id')
  const firstScreen = firstScreens.find((name) => name === screen)
  const [, method, target] = /^(social|sso):([\w.-]{1,128})$/.exec(one('direct_sign_in') ?? '') ?? []
  return {
    firstScreen: firstScreen ?? (Object.hasOwn(legacyScreens, mode) ? legacyScreens[mode] : undefined),
    directSignIn: method && target ? { method: method === 'sso' ? 'sso' : 'social', target } : undefined,
    organizationId: organizationId !== undefined && /^[\w-]{1,21}$/.test(organizationId) ? organizationId : undefined,
    uiLocales: words(one('ui_locales'))
      .filter((locale) => localeForm.test(locale))
      .slice(0, maxLocales),
    acrValues: words(one('acr_values')).filter((value) => (acrs as readonly string[]).includes(value)),
  }
}
