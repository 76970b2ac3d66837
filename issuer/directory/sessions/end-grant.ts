import { problem } from '../../base/errors/problems.ts'
import type { Recording } from '../../base/recording.ts'
import { endAuthorizations } from '../../tokens/authorizations/end.ts'
import type { Ending } from '../../tokens/authorizations/end-store.ts'
import { revokeConsent } from '../../tokens/consents/consent-store.ts'
import { findGrantee } from './user-session-store.ts'

/**
 * What has ended stays as it ended. Of a third-party application the consent is revoked, and with it ends all that it
 * got of the person: it has to ask again. The caller holds the row of the user.
 */
export const endGrantOf = async (
  recording: Recording,
  { userId, grantId, ...ending }: { userId: string; grantId: string } & Ending,
): Promise<void> => {
  const grantee = await findGrantee(recording.trx, userId, grantId)
  if (!grantee) throw problem('oidc.invalid_grant', { data: { id: grantId } })
  if (grantee.isThirdParty) await revokeApplication(recording, { ...grantee, ...ending, userId })
  else await endAuthorizations(recording, { ids: [grantId] }, ending.reason, ending.endedBy)
}

/** Everything that an application got of a person. */
export const revokeApplication = async (
  recording: Recording,
  {
    userId,
    clientId,
    isThirdParty,
    reason,
    endedBy,
  }: { userId: string; clientId: string; isThirdParty: boolean } & Ending,
): Promise<void> => {
  const { trx, record } = recording
  if (isThirdParty && (await revokeConsent(trx, userId, clientId))) {
    const extras = { userId, applicationId: clientId, revokedBy: endedBy }
    await record({ type: 'Consent.Revoked', entity: { kind: 'user', id: userId }, data: null, extras })
  }
  await endAuthorizations(recording, { userId, clientId }, isThirdParty ? 'consent_revoked' : reason, endedBy)
}
