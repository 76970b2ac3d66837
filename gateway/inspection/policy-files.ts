import { subtle } from 'node:crypto'
import { readFile, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { PolicySet } from '../../policies/decide.ts'
import { findOpa, isTest, listSources, PolicyError } from '../../policies/engine/index.ts'
import { isAddress } from '../../policies/origin.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { AnswerOf } from './api.ts'

type Told = AnswerOf<'policies'>
type ToldFile = Told['files'][number]

/** Texts that are told, each and all together, in bytes. */
const longestText = 262_144
const mostText = 2_097_152

/** What `GET /policies` answers: rules with their texts, documents without. */
export const tellPolicyFiles = async (parts: {
  config: GatewayConfig
  policies: PolicySet
  opaBin: string | undefined
}): Promise<Told> => {
  const { config, policies, opaBin } = parts
  const { path, verify } = config.policies
  const { revision } = policies
  const entrypoints = [...policies.entrypoints].sort()
  if (!(await isFolder(path))) {
    const cannotSave = 'The policies are a bundle, which is built elsewhere.'
    return { kind: 'bundle', revision, entrypoints, files: [], canSave: false, cannotSave, canTry: false }
  }
  const { files, ...read } = await filesOf(path).catch((error: unknown) => {
    // What is in force goes on.
    if (error instanceof PolicyError) return { files: [], problem: error.message }
    throw error
  })
  const hasCompiler = await findOpa({ opaBin }).then(
    () => true,
    () => false,
  )
  const cannotSave =
    (!config.inspection?.savePolicies && 'Saving is not allowed: inspection.savePolicies of gateway.yaml.') ||
    (verify && 'Only signed bundles are accepted.') ||
    (!hasCompiler && 'There is no compiler where the gateway runs.')
  const inForce = areInForce(files, policies)
  return {
    kind: 'folder',
    revision,
    entrypoints,
    ...(inForce !== undefined && { inForce }),
    ...read,
    files,
    canSave: !cannotSave,
    ...(cannotSave && { cannotSave }),
    canTry: hasCompiler && !verify,
  }
}

export const isFolder = async (path: string): Promise<boolean> =>
  !isAddress(path) && ((await stat(path).catch(() => undefined))?.isDirectory() ?? false)

const filesOf = async (folder: string): Promise<{ files: ToldFile[]; problem?: string }> => {
  const listed = await listSources(folder, { tests: true })
  const root = await realpath(folder)
  const files: ToldFile[] = []
  let left = mostText
  for (const { name } of listed) {
    const bytes = await readFile(join(folder, name)).catch(() => undefined)
    if (!bytes) continue
    // Off this thread: folders may hold 64 MB.
    const sha256 = await sha256Of(bytes)
    const isTold = name.endsWith('.rego') && bytes.length <= Math.min(left, longestText) && (await isWithin(root, name))
    if (isTold) left -= bytes.length
    files.push({ path: name, size: bytes.length, sha256, ...(isTold && { text: bytes.toString('utf8') }) })
  }
  return { files }
}

export const sha256Of = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  Buffer.from(await subtle.digest('SHA-256', bytes)).toString('hex')

/** Links within the folder are followed, as ConfigMaps need; what others lead to is not shown. */
const isWithin = async (root: string, name: string): Promise<boolean> => {
  const real = await realpath(join(root, name)).catch(() => '')
  return real.startsWith(root + sep)
}

/** Undefined where it is not known what the policies in force were compiled from. */
const areInForce = (files: readonly ToldFile[], policies: PolicySet): boolean | undefined => {
  const built = policies.forThread?.().sources
  if (!built) return undefined
  const rules = files.filter(({ path }) => !isTest(path))
  return rules.length === Object.keys(built).length && rules.every(({ path, sha256 }) => built[path] === sha256)
}
