import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runProcess, startProcess } from '../support/process.ts'

/** `deploy/Dockerfile` without Docker: its instructions, and a folder with what its last stage holds. */

export const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

export interface Instruction {
  keyword: string
  text: string
}

export const readDockerfile = async (): Promise<Instruction[]> => {
  const text = await readFile(join(root, 'deploy/Dockerfile'), 'utf8')
  return text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, keyword, rest] = /^([A-Z]+)\s+(.*)$/.exec(line)!
      return { keyword: keyword!, text: rest! }
    })
}

/** The instructions of each stage, its FROM included. */
export const stagesOf = (instructions: readonly Instruction[]): Instruction[][] => {
  const stages: Instruction[][] = []
  for (const instruction of instructions) {
    if (instruction.keyword === 'FROM') stages.push([])
    stages.at(-1)?.push(instruction)
  }
  return stages
}

/** What the dependencies' stage removes again, below `node_modules`. */
export const removedModules = (instructions: readonly Instruction[]): string[] =>
  instructions
    .filter(({ keyword, text }) => keyword === 'RUN' && text.includes('rm -rf'))
    .flatMap(({ text }) => [...text.matchAll(/node_modules\/(\S+)/g)].map(([, name]) => name!))

export interface LockFile {
  packages: Record<string, { dev?: boolean; optional?: boolean; os?: string[] }>
}

/** The folder `/app`: the built package, and what `npm ci --omit=dev` would install here, less what is removed. */
export const createImage = async (instructions: readonly Instruction[]) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-image-'))
  // Somebody else runs it.
  await chmod(folder, 0o755)
  const app = join(folder, 'app')
  await run(process.execPath, [join(root, 'bin/build.ts'), '--output', app], { cwd: root })
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as LockFile
  const removed = removedModules(instructions)
  const wanted = Object.entries(lock.packages)
    .filter(([path, { dev }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && !dev)
    .map(([path]) => path)
    .filter(
      (path) => !removed.some((name) => path === `node_modules/${name}` || path.startsWith(`node_modules/${name}/`)),
    )
  for (const path of wanted) {
    await mkdir(dirname(join(app, path)), { recursive: true })
    // Optional ones of other platforms are not there.
    await cp(join(root, path), join(app, path), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }
  for (const file of ['healthcheck.cjs', 'gateway-client.mjs'])
    await cp(join(root, 'deploy', file), join(app, 'deploy', file), { recursive: true })
  return { app, folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 10 }) }
}

/** `nobody`; root starts as it, so that nothing depends on being root. */
const ordinaryUser = 65_534
const asOrdinaryUser = (program: string, args: readonly string[]): [string, string[]] =>
  process.getuid?.() === 0
    ? ['setpriv', [`--reuid=${ordinaryUser}`, `--regid=${ordinaryUser}`, '--clear-groups', '--', program, ...args]]
    : [program, [...args]]

interface Run {
  app: string
  env: Record<string, string>
}

/** As the image does: its ENTRYPOINT with this command, as an ordinary user. */
export const startContainer = ({ app, env }: Run, entrypoint: readonly string[], command: readonly string[]) => {
  const [, ...args] = entrypoint
  return startProcess(...asOrdinaryUser(process.execPath, [...args, ...command].map(inside(app))), { cwd: app, env })
}

export const runInside = ({ app, env }: Run, command: readonly string[]) => {
  const [, ...args] = command
  return runProcess(...asOrdinaryUser(process.execPath, args.map(inside(app))), { cwd: app, env })
}

const inside = (app: string) => (text: string) => text.replace(/^\/app(?=\/|$)/, app)
