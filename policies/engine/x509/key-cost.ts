import type { KeyObject } from 'node:crypto'

/** Units to check one signature by the key, which grow with the size of RSA keys and of their exponents. */
export const verificationCost = (key: KeyObject): number => {
  const { modulusLength, publicExponent = 65_537n, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (modulusLength !== undefined) {
    const words = modulusLength / 64
    return least + Math.ceil((words * words * publicExponent.toString(2).length) / 6)
  }
  return curves[namedCurve] ?? others[key.asymmetricKeyType ?? ''] ?? most
}

const least = 5_000
const most = 200_000

const curves: Readonly<Record<string, number>> = { prime256v1: 13_000, secp384r1: 100_000, secp521r1: 100_000 }
const others: Readonly<Record<string, number>> = { ed25519: 13_000, ed448: 50_000 }
