import { z } from 'zod'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { Logger } from '../../../platform/logger.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import type { KeyChain } from './key-chain.ts'
import { idTokenKeyRotationInput, keyRecord, rotationInput, toKeyRecords } from './key-record.ts'
import { publishedKeys, type StoredKey } from './key-store.ts'
import { createKeyRotation } from './rotation.ts'
import type { SigningAlgorithmName } from './signing-algorithms.ts'
import type { SigningKeys } from './signing-keys.ts'

export interface KeyDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  envelope: Envelope
  keys: Pick<SigningKeys, 'reload'>
  /** Of new keys, when the call names none. */
  algorithm: SigningAlgorithmName
  logger: Logger
}

export const keysRoutes = ({ database, mutate, envelope, keys, algorithm, logger }: KeyDependencies): Route[] => {
  const rotations = {
    signing: createKeyRotation({ envelope }),
    idToken: createKeyRotation({ envelope, chain: 'idToken' }),
  } satisfies Record<KeyChain, unknown>
  const listed = async (chain: KeyChain) => toKeyRecords(await publishedKeys(database.query, chain))
  // What is answered holds on this instance from now on; on the others a moment later.
  const reload = () =>
    keys.reload().catch((error) => logger.warn({ err: error }, 'the signing keys could not be reloaded'))
  const reloaded = async (rows: readonly StoredKey[]) => {
    await reload()
    return { body: toKeyRecords(rows) }
  }

  return [
    route({
      method: 'GET',
      path: '/configs/oidc/private-keys',
      operationId: 'listSigningKeys',
      summary: 'Lists the signing keys, newest first; never their private parts.',
      scope: 'keys',
      secret: true,
      status: 200,
      response: z.array(keyRecord),
      handle: async () => ({ body: await listed('signing') }),
    }),
    route({
      method: 'POST',
      path: '/configs/oidc/private-keys/rotate',
      operationId: 'rotateSigningKeys',
      summary:
        'Publishes the next signing key, which signs once every verifier knows it; or, with `now`, replaces all.',
      scope: 'keys',
      freshProof: true,
      body: rotationInput,
      status: 200,
      // The keys are loaded anew once they are committed.
      idempotency: 'deferred',
      response: z.array(keyRecord),
      async handle(context) {
        const { signingKeyAlgorithm: named = algorithm, rotationGracePeriod: graceSeconds, now } = context.body
        const rows = await mutate(context, ({ trx }) =>
          now
            ? rotations.signing.replace(queryOf(trx), { algorithm: named, by: 'api' })
            : rotations.signing.rotate(queryOf(trx), { algorithm: named, graceSeconds, by: 'api' }),
        )
        return reloaded(rows)
      },
    }),
    route({
      method: 'DELETE',
      path: '/configs/oidc/private-keys/:keyId',
      operationId: 'deleteSigningKey',
      summary: 'Drops a previous signing key before its time: tokens that it signed are refused from then on.',
      scope: 'keys',
      freshProof: true,
      params: z.object({ keyId: id }),
      status: 204,
      problems: ['oidc.key_not_found', 'oidc.key_required', 'oidc.only_previous_key_can_be_deleted'],
      async handle(context) {
        await mutate(context, ({ trx }) => rotations.signing.remove(queryOf(trx), context.params.keyId, { by: 'api' }))
        await reload()
      },
    }),
    route({
      method: 'GET',
      path: '/configs/oidc/id-token-keys',
      operationId: 'listIdTokenKeys',
      summary: 'Lists the keys that sign ID tokens of clients that ask for RS256, newest first.',
      scope: 'keys',
      secret: true,
      status: 200,
      response: z.array(keyRecord),
      handle: async () => ({ body: await listed('idToken') }),
    }),
    route({
      method: 'POST',
      path: '/configs/oidc/id-token-keys/rotate',
      operationId: 'rotateIdTokenKeys',
      summary:
        'Publishes the next key for ID tokens, which signs once every verifier knows it; or, with `now`, replaces all.',
      scope: 'keys',
      freshProof: true,
      body: idTokenKeyRotationInput,
      status: 200,
      // As above.
      idempotency: 'deferred',
      response: z.array(keyRecord),
      async handle(context) {
        const { rotationGracePeriod: graceSeconds, now } = context.body
        const rows = await mutate(context, ({ trx }) =>
          now
            ? rotations.idToken.replace(queryOf(trx), { by: 'api' })
            : rotations.idToken.rotate(queryOf(trx), { graceSeconds, by: 'api' }),
        )
        return reloaded(rows)
      },
    }),
    route({
      method: 'DELETE',
      path: '/configs/oidc/id-token-keys/:keyId',
      operationId: 'deleteIdTokenKey',
      summary: 'Drops a previous key for ID tokens before its time.',
      scope: 'keys',
      freshProof: true,
      params: z.object({ keyId: id }),
      status: 204,
      problems: ['oidc.key_not_found', 'oidc.key_required', 'oidc.only_previous_key_can_be_deleted'],
      async handle(context) {
        await mutate(context, ({ trx }) => rotations.idToken.remove(queryOf(trx), context.params.keyId, { by: 'api' }))
        await reload()
      },
    }),
    // No cookie of this issuer is signed with a key of its own. Existing clients look after such keys; they find that
    // there are none.
    route({
      method: 'GET',
      path: '/configs/oidc/cookie-keys',
      operationId: 'listCookieKeys',
      summary: 'Lists the keys that sign cookies: there are none.',
      scope: 'keys',
      secret: true,
      status: 200,
      response: z.array(keyRecord).max(0),
      handle: async () => ({ body: [] }),
    }),
    route({
      method: 'DELETE',
      path: '/configs/oidc/cookie-keys/:keyId',
      operationId: 'deleteCookieKey',
      summary: 'Drops a key that signs cookies: there are none.',
      scope: 'keys',
      freshProof: true,
      params: z.object({ keyId: id }),
      status: 204,
      problems: ['oidc.key_not_found'],
      async handle({ params: { keyId } }) {
        throw problem('oidc.key_not_found', { data: { id: keyId } })
      },
    }),
  ]
}
