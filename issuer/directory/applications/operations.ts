import { isDeepStrictEqual } from 'node:util'
import type { Knex } from 'knex'
import type { TargetPolicy } from '../../../platform/http/outbound.ts'
import { newId } from '../../../platform/ids.ts'
import { refuseEscalation } from '../../base/authorization.ts'
import { changesOf } from '../../base/change.ts'
import { mergedCustomData, storableCustomData } from '../../base/custom-data.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { notFound, requireFound, unknownId } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import { fapi2Algorithms } from '../../base/fapi2.ts'
import { managementScopesOfApplications } from '../../base/management-scope-store.ts'
import type { Mutation } from '../../base/mutate.ts'
import type { Caller, OperationContext } from '../../base/route.ts'
import { endClientAccess } from '../../tokens/authorizations/end-access.ts'
import {
  type Application,
  type ApplicationPatch,
  type ApplicationRow,
  type ApplicationType,
  confidentialTypes,
  type NewApplication,
  toApplication,
} from './application.ts'
import {
  type ApplicationColumns,
  deleteApplication,
  findApplication,
  insertApplication,
  lockApplication,
  updateApplication,
} from './application-store.ts'
import { refuseConsole } from './refuse-console.ts'
import { defaultSecretName } from './secret.ts'
import { storeSecret } from './secret-operations.ts'

export interface ApplicationDependencies extends ManagementDependencies {
  /** Where logout tokens may be sent; the relay checks again at every connect. */
  targets: TargetPolicy
}

/**
 * Every change of an application. They emit no events. Its secrets: `secret-operations.ts`; its roles:
 * `directory/role-assignments/operations.ts`.
 */
export const applicationOperations = ({
  database: { knex },
  mutate,
  indicators,
  targets,
}: Pick<ApplicationDependencies, 'database' | 'mutate' | 'indicators' | 'targets'>) => {
  /** Locks the application, for somebody who may change it. */
  const lockFor = async (trx: Knex, caller: Caller, id: string, unknown = unknownId) => {
    const row = requireFound(await lockApplication(trx, id), id, unknown)
    await refuseEscalation(caller, () => managementScopesOfApplications(trx, indicators, [id]))
    refuseConsole(id)
    return row
  }

  const refuseTarget = async ({ oidcClientMetadata }: ApplicationPatch): Promise<void> => {
    const url = oidcClientMetadata?.backchannelLogoutUri
    const refused = url === undefined ? undefined : await targets.refusal(url)
    if (refused === undefined) return
    throw problem('guard.invalid_input', { detail: `oidcClientMetadata.backchannelLogoutUri: ${refused}` })
  }

  const change = (
    context: OperationContext,
    id: string,
    patchOf: (row: ApplicationRow) => Partial<ApplicationColumns>,
    changed: (mutation: Mutation, before: ApplicationRow, after: ApplicationRow) => Promise<void> = async () => {},
  ) =>
    mutate(context, async (mutation) => {
      const row = await lockFor(mutation.trx, context.caller, id)
      const changes = changesOf<ApplicationColumns>(row, patchOf(row))
      if (!changes) return toApplication(row)
      const after = await updateApplication(mutation.trx, id, changes)
      await changed(mutation, row, after)
      return toApplication(after)
    })

  return {
    async get(id: string): Promise<Application & { isAdmin: boolean }> {
      const row = requireFound(await findApplication(knex, id), id)
      const carried = await managementScopesOfApplications(knex, indicators, [id])
      return { ...toApplication(row), isAdmin: carried.includes('all') }
    },

    /** Only these have roles. */
    async requireMachineToMachine(id: string): Promise<void> {
      const row = requireFound(await findApplication(knex, id), id)
      if (row.type !== 'MachineToMachine') throw problem('application.invalid_type')
    },

    /** A type that can keep a secret gets its first one; `secret` is its value. */
    async create(context: OperationContext, input: NewApplication): Promise<Application & { secret?: string }> {
      await refuseTarget(input)
      return mutate(context, async ({ trx }) => {
        // SAML applications are made in another way, which does not exist yet.
        if (input.type === 'SAML') throw problem('application.invalid_type')
        checkFit(input.type, input.isThirdParty, input)
        checkAlgorithms(input)
        const row = await insertApplication(trx, {
          id: newId(),
          name: input.name,
          description: input.description ?? null,
          type: input.type,
          oidc_client_metadata: input.oidcClientMetadata ?? {},
          custom_client_metadata: input.customClientMetadata ?? {},
          custom_data: storableCustomData(input.customData ?? {}),
          is_third_party: input.isThirdParty,
        })
        const usesSecrets = input.oidcClientMetadata?.tokenEndpointAuthMethod !== 'private_key_jwt'
        if (!confidentialTypes.has(input.type) || !usesSecrets) return toApplication(row)
        const { value } = await storeSecret(trx, row.id, { name: defaultSecretName, expiresAt: null })
        return { ...toApplication(row), secret: value }
      })
    },

    /** Taking a key away ends the application's tokens, as taking a secret away does. */
    async update(context: OperationContext, id: string, patch: ApplicationPatch): Promise<Application> {
      await refuseTarget(patch)
      return change(
        context,
        id,
        (row) => {
          checkFit(row.type, row.is_third_party, patch)
          keepDeviceFlow(row, patch)
          if (patch.oidcClientMetadata || patch.customClientMetadata) checkAlgorithms(toApplication(row), patch)
          return {
            name: patch.name,
            description: patch.description,
            oidc_client_metadata: patch.oidcClientMetadata,
            custom_client_metadata: patch.customClientMetadata,
            custom_data: storableCustomData(patch.customData),
          } as Partial<ApplicationColumns>
        },
        async (mutation, before, after) => {
          if (losesKey(before, after)) await endClientAccess(mutation, id)
        },
      )
    },

    /** Merges at the first level; answers the merged object. */
    mergeCustomData: async (context: OperationContext, id: string, customData: Record<string, unknown>) =>
      (await change(context, id, (row) => ({ custom_data: mergedCustomData(row.custom_data, customData) }))).customData,

    delete: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async (mutation) => {
        await lockFor(mutation.trx, context.caller, id, notFound)
        await deleteApplication(mutation.trx, id)
        await endClientAccess(mutation, id)
      }),
  }
}

/** What depends on the type: custom schemes are for native applications, token exchange is for our own. */
const checkFit = (type: ApplicationType, isThirdParty: boolean, input: ApplicationPatch) => {
  if (isThirdParty && (type === 'MachineToMachine' || type === 'Protected')) {
    throw problem('application.invalid_type', { detail: 'An application of this type cannot be a third party.' })
  }
  if (isThirdParty && input.customClientMetadata?.allowTokenExchange) {
    throw problem('application.third_party_application_cannot_enable_token_exchange')
  }
  if (type !== 'Native' && input.customClientMetadata?.isDeviceFlow)
    throw problem('application.device_flow_native_only')
  const {
    redirectUris = [],
    postLogoutRedirectUris = [],
    tokenEndpointAuthMethod: method,
    jwks,
  } = input.oidcClientMetadata ?? {}
  const refuse = (detail: string) => problem('guard.invalid_input', { detail: `oidcClientMetadata: ${detail}` })
  const isConfidential = confidentialTypes.has(type)
  if (!isConfidential && jwks) throw refuse('an application of this type cannot keep a key, so it has no jwks.')
  if (method !== undefined && (method === 'none') === isConfidential) {
    throw refuse(`an application of this type cannot have the tokenEndpointAuthMethod ${method}.`)
  }
  if (method === 'private_key_jwt' && !jwks) throw refuse('private_key_jwt needs jwks.')
  if (!isConfidential && input.customClientMetadata?.requirePkce === false) {
    throw problem('guard.invalid_input', {
      detail: 'customClientMetadata: an application of this type cannot do without PKCE.',
    })
  }
  if (!isConfidential && input.customClientMetadata?.securityProfile !== undefined) {
    throw problem('guard.invalid_input', {
      detail: 'customClientMetadata: an application of this type cannot keep a key, so it cannot be held to fapi2.',
    })
  }
  const foreign = [...redirectUris, ...postLogoutRedirectUris].find((uri) => !/^https?:/i.test(uri))
  if (type !== 'Native' && foreign !== undefined) {
    throw refuse('only a native application may use a URI that is not http or https.')
  }
}

/** FAPI 2.0 Security Profile §5.4.1, of what signs for the application and to it. */
const checkAlgorithms = (of: NewApplication | Application, patch: ApplicationPatch = {}) => {
  const { oidcClientMetadata: oidc, customClientMetadata: custom } = { ...of, ...patch }
  if (custom?.securityProfile !== 'fapi2') return
  const { idTokenSignedResponseAlg, jwks } = oidc ?? {}
  const named = [
    { member: 'oidcClientMetadata.idTokenSignedResponseAlg', algorithm: idTokenSignedResponseAlg },
    ...(jwks?.keys ?? []).map(({ alg }) => ({ member: 'oidcClientMetadata.jwks', algorithm: alg })),
  ]
  const other = named.find(({ algorithm }) => algorithm !== undefined && !fapi2Algorithms.includes(String(algorithm)))
  if (other) throw problem('application.algorithm_not_of_profile', { data: other })
}

/** Whoever has tokens of it signed in one way or the other. Absent means no. */
const keepDeviceFlow = (
  { type, custom_client_metadata: before }: ApplicationRow,
  { customClientMetadata }: ApplicationPatch,
) => {
  if (
    type === 'Native' &&
    customClientMetadata &&
    (customClientMetadata.isDeviceFlow ?? false) !== (before.isDeviceFlow ?? false)
  )
    throw problem('application.device_flow_not_changeable')
}

const losesKey = (before: ApplicationRow, after: ApplicationRow): boolean => {
  const keysOf = ({ oidc_client_metadata: { jwks } }: ApplicationRow) => jwks?.keys ?? []
  return keysOf(before).some((key) => !keysOf(after).some((other) => isDeepStrictEqual(other, key)))
}
