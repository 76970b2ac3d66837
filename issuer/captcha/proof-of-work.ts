import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../platform/clock.ts'
import type { Query } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import { sha256 } from '../../platform/secret.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { CaptchaAnswer, CaptchaOutcome, CaptchaUse } from './captcha.ts'
import { useChallenge } from './captcha-store.ts'

/**
 * A test without a third party: the browser looks for a number, so that trying passwords on everybody costs processor
 * time. A challenge is `<payload>.<mac>`; its solution appends `.<number>`, where SHA-256 of `<mac>.<number>` begins
 * with as many zero bits as the challenge says. What it is for is under the MAC and not in it.
 */
export interface ProofOfWork {
  challenge(use: CaptchaUse): { provider: 'proof_of_work'; challenge: string; difficulty: number }
  verify(answer: CaptchaAnswer): Promise<CaptchaOutcome>
}

/** How long a page may be looked at before its form is sent. */
const lifetimeMs = 30 * 60_000

// One block of SHA-256 holds 43 characters, the dot, and eleven digits.
const solutionPattern = /^([\w-]{1,200})\.([\w-]{43})\.(\d{1,11})$/

export const createProofOfWork = ({
  query,
  hmac,
  difficulty,
  now,
}: {
  query: Query
  hmac: Hmac
  /** In bits. */
  difficulty: number
  now: Clock
}): ProofOfWork => {
  const macOf = (payload: string, { purpose, context }: CaptchaUse) => hmac('captcha', payload, purpose, context)

  return {
    challenge(use) {
      const parts = [randomToken(), difficulty, now().getTime() + lifetimeMs]
      const payload = Buffer.from(JSON.stringify(parts)).toString('base64url')
      return {
        provider: 'proof_of_work',
        challenge: `${payload}.${macOf(payload, use).toString('base64url')}`,
        difficulty,
      }
    },
    async verify({ answer, ...use }) {
      const [, payload, mac, number] = solutionPattern.exec(answer) ?? []
      if (payload === undefined || mac === undefined) return 'invalid'
      const wanted = macOf(payload, use)
      const given = Buffer.from(mac, 'base64url')
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return 'invalid'
      // What has our MAC is what we wrote.
      const [, bits, expiresAt] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [string, number, number]
      if (leadingZeros(createHash('sha256').update(`${mac}.${number}`).digest()) < bits) return 'invalid'
      // By the challenge: a second solution of the same one is none.
      const used = await useChallenge(query, { digest: sha256(payload), expiresAt: new Date(expiresAt) })
      if (!used.isCurrent) return 'expired'
      return used.isFirst ? 'passed' : 'used'
    },
  }
}

/** Up to 32. */
const leadingZeros = (digest: Buffer): number => Math.clz32(digest.readUInt32BE(0))
