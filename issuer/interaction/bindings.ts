import { z } from 'zod'
import type { Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { Factors, NewCredential } from '../directory/users/factors/index.ts'
import type { Proof, ProofKindName } from './proofs.ts'

/** A new factor waits in its proof until the interaction finishes: what is secret in it is sealed for that proof. */
export const pendingFactorContext = (proofId: string) => `pending-factor:${proofId}`

export const sealFactor = (envelope: Envelope, proofId: string, factor: object): { sealed: string } => ({
  sealed: envelope.seal(Buffer.from(JSON.stringify(factor)), pendingFactorContext(proofId)).toString('base64'),
})

export const openFactor = <Schema extends z.ZodType>(
  envelope: Envelope,
  schema: Schema,
  { id, data: { factor } }: Pick<Proof, 'id' | 'data'>,
): z.output<Schema> => {
  const { sealed } = z.object({ sealed: z.string() }).parse(factor)
  return schema.parse(JSON.parse(envelope.open(Buffer.from(sealed, 'base64'), pendingFactorContext(id)).toString()))
}

/** Base32. `confirmedStep`: of the code that the person has shown. */
export const pendingTotp = z.object({ secret: z.string(), confirmedStep: z.number().optional() })
export const pendingBackupCodes = z.object({ codes: z.array(z.string()) })

const bytes = z.string().transform((text) => Buffer.from(text, 'base64url'))
const pendingCredential = z.object({
  credentialId: bytes,
  publicKey: bytes,
  algorithm: z.number(),
  signCount: z.number(),
  transports: z.array(z.string()),
  isBackupEligible: z.boolean(),
  isBackedUp: z.boolean(),
})

export const toPendingCredential = ({ credentialId, publicKey, ...rest }: NewCredential) => ({
  ...rest,
  credentialId: credentialId.toString('base64url'),
  publicKey: publicKey.toString('base64url'),
})

export const pendingPasskey = z.object({
  userHandle: z.string(),
  /** The browser may make it by itself. */
  isConditional: z.boolean().optional(),
  credential: pendingCredential.optional(),
  agent: z.string().optional(),
})

interface Binding {
  trx: Query
  userId: string
  proof: Proof
}

/** What each kind of proof adds to the person when it was made to bind something. Addresses are columns of the user. */
export const createBindings = ({ envelope, factors }: { envelope: Envelope; factors: Factors }) => {
  const bindings: Partial<Record<ProofKindName, (binding: Binding) => Promise<void>>> = {
    async totp({ trx, userId, proof }) {
      const { secret, confirmedStep } = openFactor(envelope, pendingTotp, proof)
      await factors.bindTotp(trx, { userId, secret, ...(confirmedStep !== undefined && { confirmedStep }) })
    },
    async backup_code({ trx, userId, proof }) {
      await factors.keepBackupCodes(trx, userId, openFactor(envelope, pendingBackupCodes, proof).codes)
    },
    async passkey({ trx, userId, proof }) {
      const { userHandle, credential, agent } = openFactor(envelope, pendingPasskey, proof)
      if (!credential) throw new Error('A passkey that was not verified cannot be bound.')
      await factors.bindPasskey(trx, {
        userId,
        userHandle: Buffer.from(userHandle, 'base64url'),
        credential,
        ...(agent !== undefined && { agent }),
      })
    },
  }
  const isFactor = ({ kind, purpose }: Proof) => purpose === 'bind' && bindings[kind] !== undefined

  return {
    isFactor,
    /** Throws as `Factors.bind…`. */
    async bindAll(trx: Query, userId: string, proofs: readonly Proof[]): Promise<void> {
      for (const proof of proofs.filter(isFactor)) await bindings[proof.kind]!({ trx, userId, proof })
    },
  }
}

export type Bindings = ReturnType<typeof createBindings>
