import { execFile } from 'node:child_process'
import { chmod, copyFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { z } from 'zod'
import { gatewayJsonSchema } from '../gateway/config/json-schema.ts'
import { buildConsole, compressConsole } from './build/console.ts'
import { importGraph, namingEmittedFiles } from './build/emitted-imports.ts'
import { commandLine, gatewaySchemaFile, publicEntries, publishedManifest, sourceManifest } from './build/manifest.ts'

/**
 * `npm run build [-- --output <folder>]` makes `dist/`: the package for publishing, plain JavaScript with the files
 * that it reads at their usual places. `docs/maintaining.md` says what is in it and why.
 */
const build = async (target: string): Promise<void> => {
  await requireReplaceable(target)
  // Made aside, so that what stands in the target is always a whole package.
  const output = `${target}.${process.pid}`
  try {
    await compile(output)
    await copyAssets(output)
    await publishDeclarations(output)
    await copyConsole(output)
    await copyDocuments(output)
    await writeSchema(output)
    await writeManifest(output)
    await rm(target, { recursive: true, force: true })
    await rename(output, target)
  } finally {
    await rm(output, { recursive: true, force: true })
  }
}

const root = fileURLToPath(new URL('..', import.meta.url))
const areas = [
  'bin',
  'deliveries',
  'events',
  'gateway',
  'issuer',
  'migrations',
  'platform',
  'policies',
  'relay',
  'testing',
]

/**
 * Files beside the code: what ships with it, and what only the sources need. Anything else must be put into one of the
 * two.
 */
const ships = /\.(rego|json|yaml|proto|tar\.gz)$|\/proto\/NOTICE$|^bin\/surrogate\.cjs$/
const staysHere = /\.ts$|^bin\/require-node\.cjs$|(^|\/)\./

/** Only what an earlier build made is replaced; the sources have another `bin`. */
const requireReplaceable = async (target: string): Promise<void> => {
  const found = await readdir(target).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const text = await readFile(join(target, 'package.json'), 'utf8').catch(() => '{}')
  const { bin } = z.object({ bin: z.unknown().optional() }).parse(JSON.parse(text))
  if (found.length > 0 && JSON.stringify(bin) !== JSON.stringify(commandLine))
    throw new Error(`${target} holds something else than a built package.`)
}

const compile = async (output: string): Promise<void> => {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
  const args = [compiler, '--project', join(root, 'tsconfig.build.json'), '--outDir', output]
  await promisify(execFile)(process.execPath, args, { cwd: root }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`The sources do not compile.\n${error.stdout}${error.stderr}`)
    },
  )
}

const copyAssets = async (output: string): Promise<void> => {
  const files = (await Promise.all(areas.map((area) => filesBelow(root, area)))).flat()
  const unknown = files.filter((file) => !ships.test(file) && !staysHere.test(file))
  if (unknown.length > 0) throw new Error(`bin/build.ts does not say whether these ship: ${unknown.join(', ')}`)
  for (const file of files.filter((name) => ships.test(name))) await copy(join(root, file), join(output, file))
  await chmod(join(output, 'bin', 'surrogate.cjs'), 0o755)
}

/**
 * The declarations that an application can reach, naming files that it has; the others would only invite imports of
 * internals.
 */
const publishDeclarations = async (output: string): Promise<void> => {
  const declarations = (await filesBelow(output, '')).filter((file) => file.endsWith('.d.ts'))
  for (const file of declarations) {
    await writeFile(join(output, file), namingEmittedFiles(await readFile(join(output, file), 'utf8')))
  }
  const { files } = importGraph(output, entries('.d.ts'))
  for (const file of declarations) if (!files.has(file)) await rm(join(output, file))
}

/** With all that browsers take compressed; `bin/cli/console-folder.ts` finds it there. */
const copyConsole = async (output: string): Promise<void> => {
  const built = await buildConsole()
  if (built === undefined) throw new Error('The console is built by Vite, which is not installed: run npm ci.')
  const folder = join(output, 'console')
  await cp(built, folder, { recursive: true })
  await compressConsole(folder)
}

/** `docs/package.md` is what the registry shows; its links to its neighbours are followed from one folder higher. */
const copyDocuments = async (output: string): Promise<void> => {
  await copy(join(root, 'LICENSE'), join(output, 'LICENSE'))
  await copy(join(root, 'CHANGELOG.md'), join(output, 'CHANGELOG.md'))
  const readme = await readFile(join(root, 'docs', 'package.md'), 'utf8')
  await writeFile(join(output, 'README.md'), readme.replace(/\]\((?=[\w-]+\.md)/g, '](docs/'))
  const pages = (await filesBelow(root, 'docs')).filter((file) => file.endsWith('.md') && !forMaintainers.has(file))
  // The page about proxies in front of the gateway points to their files.
  const shown = await filesBelow(root, 'deploy/in-front')
  for (const file of [...pages, ...shown]) await copy(join(root, file), join(output, file))
  // The pictures, half a megabyte, are in the repository alone.
  const consolePage = join(output, 'docs/console.md')
  await writeFile(consolePage, (await readFile(consolePage, 'utf8')).replaceAll(/^!\[.*\]\(pictures\/.*\)\n\n/gm, ''))
}

/** For editors of `gateway.yaml`; `surrogate gateway schema` prints the same. */
const writeSchema = (output: string): Promise<void> =>
  writeFile(join(output, gatewaySchemaFile), `${JSON.stringify(gatewayJsonSchema(), null, 2)}\n`)

const forMaintainers = new Set(['docs/package.md', 'docs/maintaining.md', 'docs/architecture.md'])

const writeManifest = async (output: string): Promise<void> => {
  const source = sourceManifest.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  // The console is for browsers: it has all that it needs in it.
  const code = (await filesBelow(output, '')).filter((file) => file.endsWith('.js') && !file.startsWith('console/'))
  const { packages } = importGraph(output, [...code, ...entries('.d.ts')])
  const files = (await readdir(output)).filter((name) => !alwaysPacked.has(name)).sort()
  await writeFile(
    join(output, 'package.json'),
    `${JSON.stringify(publishedManifest(source, { packages, files }), null, 2)}\n`,
  )
}

/** npm packs these without being told. */
const alwaysPacked = new Set(['LICENSE', 'README.md'])

const entries = (extension: string): string[] => Object.values(publicEntries).map((file) => file + extension)

/** Paths relative to `folder`, with `/`. */
const filesBelow = async (folder: string, area: string): Promise<string[]> => {
  const found = await readdir(join(folder, area), { withFileTypes: true, recursive: true })
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(resolve(folder).length + 1))
    .sort()
}

const copy = async (from: string, to: string): Promise<void> => {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to)
}

const { values } = parseArgs({ options: { output: { type: 'string', default: join(root, 'dist') } } })
const output = resolve(values.output)
await build(output).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
process.stdout.write(`${relative('', output) || '.'}: built\n`)
