import { createPrivateKey } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PolicyError } from '../../policies/decide.ts'
import {
  compilePolicies,
  publishBundle,
  readBundle,
  readSources,
  type SignatureAlgorithm,
  signatureAlgorithms,
} from '../../policies/engine/index.ts'
import { bundleFile } from '../../policies/origin.ts'
import { type Invocation, number, UsageError } from './invocation.ts'

/**
 * `surrogate policy build`: a folder of rules becomes a bundle, for publishing with a serial number and a signature.
 */
export const buildBundle = async ({ path, values, opa, say }: Invocation): Promise<number> => {
  const signing = await signingKey(values)
  // Whoever signs publishes; the time is a number that grows from one bundle to the next.
  const serial = number(values, 'serial') ?? (signing && Math.floor(Date.now() / 1000))
  if (serial !== undefined && !Number.isSafeInteger(serial)) throw new UsageError('--serial must be a whole number')
  const sources = await readSources(path)
  const { revision } = values
  const compiled = await compilePolicies({ sources, opa: await opa(), ...(revision !== undefined && { revision }) })
  const bundle = serial === undefined ? compiled : publishBundle(compiled, { serial, key: signing })
  const output = values['output'] ?? join(path, bundleFile)
  await writeFile(output, bundle)
  const made = readBundle(bundle)
  const published = [serial !== undefined && `serial ${serial}`, signing && `signed with ${signing.keyId}`]
  say([`${output}: revision ${made.revision}`, ...published, `${bundle.length} bytes`].filter(Boolean).join(', '))
  return 0
}

const signingKey = async (values: Invocation['values']) => {
  const { algorithm = 'ES256', scope } = values
  const file = values['signing-key']
  if (file === undefined) return undefined
  if (!signatureAlgorithms.includes(algorithm as SignatureAlgorithm)) {
    throw new UsageError(`--algorithm must be one of ${signatureAlgorithms.join(', ')}`)
  }
  const pem = await readFile(file).catch((cause: unknown) => {
    throw new PolicyError(`${file} cannot be read`, { cause })
  })
  try {
    const key = createPrivateKey(pem)
    const fits = key.asymmetricKeyType === (algorithm === 'ES256' ? 'ec' : 'rsa')
    if (!fits) throw new TypeError('another type of key')
    return { keyId: values['key-id'] ?? 'default', algorithm: algorithm as SignatureAlgorithm, key, scope }
  } catch (cause) {
    throw new PolicyError(`${file} holds no private key for ${algorithm}`, { cause })
  }
}
