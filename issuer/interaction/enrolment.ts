import type { Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import {
  matchingStep,
  newBackupCodes,
  newTotpSecret,
  qrDataUrl,
  qrSvg,
  readTotpSecret,
  totpUri,
} from '../directory/users/factors/index.ts'
import { openFactor, pendingBackupCodes, pendingTotp, sealFactor } from './bindings.ts'
import type { Interaction } from './interaction-store.ts'
import { beginProof, findPendingProof, findWaiting, keepProof, takeTry } from './proof-store.ts'

export interface NewTotp {
  proofId: string
  /** Base32. */
  secret: string
  uri: string
  /** Inline SVG. */
  svg: string
  dataUrl: string
}

/**
 * New factors that people type. They wait in proofs of their own until the interaction finishes, and prove nothing in
 * it.
 */
export interface Enrolment {
  /** A secret to be confirmed; the same one as long as it waits, unless another is asked for. */
  totp(
    interaction: Interaction,
    about: { issuer: string; account: string },
    options?: { anew?: boolean },
  ): Promise<NewTotp | undefined>
  /** Five tries; no lockout. The step of the code is used up. False: wrong, or nothing waits. */
  confirmTotp(interaction: Interaction, answer: { proofId: string; code: string }): Promise<boolean>
  /** Ten codes, to be shown once and kept by `keepBackupCodes`. */
  backupCodes(interaction: Interaction): Promise<{ proofId: string; codes: string[] } | undefined>
  /** The person has seen them. */
  keepBackupCodes(interaction: Interaction, proofId: string): Promise<boolean>
}

/** How long a new factor waits to be confirmed, in seconds. */
const seconds = 600
const tries = 5

export const createEnrolment = ({
  query,
  envelope,
  now,
}: {
  query: Query
  envelope: Envelope
  now: () => Date
}): Enrolment => {
  const begin = (interaction: Interaction, kind: 'totp' | 'backup_code', factor: object) => {
    const id = newId()
    return beginProof(query, {
      ...{ id, interactionId: interaction.id, userId: interaction.person?.id ?? null, kind, seconds },
      ...{ purpose: 'bind', secret: null, data: { factor: sealFactor(envelope, id, factor) } },
    })
  }

  const keep = async (interaction: Interaction, kind: 'totp' | 'backup_code', proofId: string, factor: object) =>
    (await keepProof(query, {
      ...{ interactionId: interaction.id, userId: interaction.person?.id ?? null, pendingId: proofId },
      ...{ kind, purpose: 'bind', data: { factor: sealFactor(envelope, proofId, factor) } },
    })) !== undefined

  return {
    async totp(interaction, about, { anew = false } = {}) {
      const waiting = anew ? undefined : await findPendingProof(query, interaction.id, 'totp', 'bind')
      const secret = waiting ? openFactor(envelope, pendingTotp, waiting).secret : newTotpSecret()
      const proofId = waiting?.id ?? (await begin(interaction, 'totp', { secret }))
      if (proofId === undefined) return undefined
      const uri = totpUri({ secret, ...about })
      return { proofId, secret, uri, svg: qrSvg(uri), dataUrl: qrDataUrl(uri) }
    },

    async confirmTotp(interaction, { proofId, code }) {
      const taken = await takeTry(query, {
        ...{ id: proofId, interactionId: interaction.id, kinds: ['totp'], purposes: ['bind'], most: tries },
      })
      if (!taken) return false
      const { secret } = openFactor(envelope, pendingTotp, taken)
      const confirmedStep = matchingStep(readTotpSecret(secret)!, code, now())
      return confirmedStep !== undefined && keep(interaction, 'totp', proofId, { secret, confirmedStep })
    },

    async backupCodes(interaction) {
      const codes = newBackupCodes()
      const proofId = await begin(interaction, 'backup_code', { codes })
      return proofId === undefined ? undefined : { proofId, codes }
    },

    async keepBackupCodes(interaction, proofId) {
      const waiting = await findWaiting(query, interaction.id, proofId)
      if (waiting?.kind !== 'backup_code' || waiting.purpose !== 'bind') return false
      return keep(interaction, 'backup_code', proofId, openFactor(envelope, pendingBackupCodes, waiting))
    },
  }
}
