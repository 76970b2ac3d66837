import { hkdfSync } from 'node:crypto'
import { z } from 'zod'
import type { Query } from '../../../platform/database/database.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { randomToken } from '../../../platform/ids.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import type { AuthorizationParameters } from './authorization-parameters.ts'
import {
  deletePushedRequest,
  insertPushedRequest,
  takePostedRequest,
  usePushedRequest,
} from './pushed-request-store.ts'

/**
 * Authorization requests that are kept under a `request_uri`: those that a client sent ahead (RFC 9126), and those that
 * a page of another site posted, whose browser comes again by GET and then brings its cookies.
 */
export const pushedPrefix = 'urn:ietf:params:oauth:request_uri:'
export const postedPrefix = 'urn:surrogate:stored:'

/** In seconds: how long one waits for its browser. */
export const pushedRequestTtl = 60
/** In seconds: how long a browser may come again with one that a client sent ahead. */
const inUseTtl = 3_600

/** A request that is kept, read. */
export interface KeptRequest {
  parameters: AuthorizationParameters
  /** Of one that a client sent ahead: the digest of its `request_uri`. */
  digest: Buffer | undefined
}

const parametersForm = z.array(z.tuple([z.string(), z.array(z.string())]))

// A request may hold an ID token or an address. Only whoever has its `request_uri` can read it.
const envelopeOf = (id: string) =>
  createEnvelope({ current: new Uint8Array(hkdfSync('sha256', id, '', 'pushed-request', 32)) })

const seal = (id: string, parameters: AuthorizationParameters) =>
  envelopeOf(id)
    .seal(JSON.stringify([...parameters]), 'pushed-request')
    .toString('base64')

const open = (id: string, sealed: string): AuthorizationParameters =>
  new Map(
    parametersForm.parse(JSON.parse(envelopeOf(id).open(Buffer.from(sealed, 'base64'), 'pushed-request').toString())),
  )

const digestOf = (id: string) => tokenDigest('pushed-request', id)

export const createPushedRequests = ({ query }: { query: Query }) => {
  const keep = async (
    kind: 'pushed' | 'posted',
    prefix: string,
    clientId: string | null,
    parameters: AuthorizationParameters,
  ) => {
    const id = randomToken()
    const sealed = seal(id, parameters)
    await insertPushedRequest(query, {
      digest: digestOf(id),
      kind,
      clientId,
      parameters: sealed,
      ttl: pushedRequestTtl,
    })
    return prefix + id
  }

  return {
    /** Keeps what a client sent ahead; answers its `request_uri`. */
    push: (clientId: string, parameters: AuthorizationParameters): Promise<string> =>
      keep('pushed', pushedPrefix, clientId, parameters),

    /** Keeps what another site posted. */
    post: (parameters: AuthorizationParameters): Promise<string> => keep('posted', postedPrefix, null, parameters),

    /** Undefined when there is no such request for this client and this browser (any more). */
    async use(
      requestUri: string,
      { clientId, browser }: { clientId: string; browser: string },
    ): Promise<KeptRequest | undefined> {
      if (requestUri.startsWith(postedPrefix)) {
        const id = requestUri.slice(postedPrefix.length)
        const sealed = await takePostedRequest(query, digestOf(id))
        return sealed === undefined ? undefined : { parameters: open(id, sealed), digest: undefined }
      }
      const id = requestUri.slice(pushedPrefix.length)
      const digest = digestOf(id)
      const sealed = await usePushedRequest(query, {
        digest,
        clientId,
        browser: tokenDigest('browser', browser),
        ttl: inUseTtl,
      })
      return sealed === undefined ? undefined : { parameters: open(id, sealed), digest }
    },

    /** It has led to a code, so it is used up. */
    end: (digest: Buffer): Promise<void> => deletePushedRequest(query, digest),
  }
}
export type PushedRequests = ReturnType<typeof createPushedRequests>

/** Whether a `request_uri` is one of ours; others are not supported. */
export const isOurs = (requestUri: string | undefined): requestUri is string =>
  requestUri?.startsWith(pushedPrefix) === true || requestUri?.startsWith(postedPrefix) === true
