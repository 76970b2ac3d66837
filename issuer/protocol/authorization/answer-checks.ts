import { OAuthError } from '../../base/errors/problems.ts'
import { type AuthorizationRequest, responseModes } from '../../interaction/authorization-request.ts'
import { isPublic } from '../clients/client.ts'
import { type Asked, invalid } from './asked.ts'
import { onlyValueOf } from './authorization-parameters.ts'

/** How the client is answered, and what shows that it is the one who asked. */

/** Where an answer goes. */
export type Recipient = Pick<AuthorizationRequest, 'redirectUri' | 'responseMode' | 'state'>

/** In the mode that was asked for, where there is such a mode. */
export const recipientOf = ({ parameters }: Asked): Recipient => {
  const mode = onlyValueOf(parameters, 'response_mode')
  const state = onlyValueOf(parameters, 'state')
  return {
    redirectUri: onlyValueOf(parameters, 'redirect_uri')!,
    responseMode: responseModes.find((name) => name === mode) ?? 'query',
    ...(state !== undefined && isEchoable(state, maxStateBytes) ? { state } : {}),
  }
}

export const codeAsked = ({ parameters }: Asked) => {
  const responseType = onlyValueOf(parameters, 'response_type')
  if (responseType === undefined) throw invalid('Missing required parameter: response_type.')
  if (responseType !== 'code')
    throw new OAuthError('unsupported_response_type', 'The only response_type that is supported is code.')
  return {}
}

export const knownResponseMode = ({ parameters }: Asked) => {
  const asked = onlyValueOf(parameters, 'response_mode') ?? 'query'
  const responseMode = responseModes.find((mode) => mode === asked)
  if (responseMode === undefined) throw invalid(`The response_mode must be one of ${responseModes.join(', ')}.`)
  return { responseMode }
}

/** In bytes. */
const maxStateBytes = 4_096
const maxNonceBytes = 1_024

// A form would send line breaks back in another spelling.
const controlCharacters = /[\p{Cc}]/u

const isEchoable = (text: string, maxBytes: number) =>
  Buffer.byteLength(text) <= maxBytes && !controlCharacters.test(text)

export const echoedValues = ({ parameters }: Asked) => {
  const state = onlyValueOf(parameters, 'state')
  const nonce = onlyValueOf(parameters, 'nonce')
  if (state !== undefined && !isEchoable(state, maxStateBytes))
    throw invalid(`The state must be at most ${maxStateBytes} bytes, without control characters.`)
  if (nonce !== undefined && !isEchoable(nonce, maxNonceBytes))
    throw invalid(`The nonce must be at most ${maxNonceBytes} bytes, without control characters.`)
  return { state, nonce }
}

/** RFC 7636 §4.2: of SHA-256 it is always this long. */
const challengeForm = /^[\w-]{43}$/

export const proofKey = ({ parameters, client }: Asked) => {
  const codeChallenge = onlyValueOf(parameters, 'code_challenge')
  const method = onlyValueOf(parameters, 'code_challenge_method')
  if (codeChallenge === undefined) {
    if (method !== undefined) throw invalid('There is a code_challenge_method without a code_challenge.')
    // RFC 9700 §2.1.1
    if (client.requirePkce || isPublic(client)) throw invalid('Missing required parameter: code_challenge (PKCE).')
    return {}
  }
  if (method !== 'S256') throw invalid('The code_challenge_method must be S256.')
  if (!challengeForm.test(codeChallenge)) throw invalid('The code_challenge must be 43 characters of base64url.')
  return { codeChallenge }
}

/** RFC 9449 §10: a thumbprint by SHA-256 (RFC 7638), so always this long. */
export const keyThumbprint = ({ parameters }: Asked) => {
  const dpopJkt = onlyValueOf(parameters, 'dpop_jkt')
  if (dpopJkt === undefined) return {}
  if (!challengeForm.test(dpopJkt)) throw invalid('The dpop_jkt must be 43 characters of base64url.')
  return { dpopJkt }
}
