import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/** The rules that keep the parts apart; each test answers with the list of what breaks its rule. */

const areas: Record<string, readonly string[]> = {
  platform: [],
  policies: ['platform'],
  gateway: ['platform', 'policies'],
  events: ['platform'],
  migrations: ['platform'],
  deliveries: ['platform', 'events'],
  issuer: ['platform', 'policies', 'events', 'deliveries'],
  relay: ['platform', 'events', 'deliveries'],
  // A browser and an application, for the command line and for tests of integrators.
  testing: ['platform', 'issuer'],
  bin: ['platform', 'policies', 'gateway', 'events', 'deliveries', 'issuer', 'relay', 'migrations', 'testing'],
  // For browsers. What it knows of the server is generated into it, and nobody imports it: it is built.
  web: [],
}

/** In a table of floors: where the roof is, if something stands above it. */
const roof = '(roof)'

/**
 * Within a part: its rooms, from the roof down. A room imports only rooms that stand below it, types too. A room is a
 * folder or a file of the part; what is not named stands on the roof. Rooms on one line do not know each other.
 */
const floors: Record<string, readonly (readonly string[])[]> = {
  gateway: [
    ['workers'],
    [roof],
    ['ext-authz', 'inspection'],
    ['upstream', 'authorize', 'logs', 'listener', 'telemetry'],
    ['caller'],
    ['request'],
    ['config'],
    ['config/settings'],
    ['routing', 'refusals'],
  ],
  policies: [
    ['authoring/', 'data-api/', 'shadow.ts'],
    ['decide.ts', 'schemas.ts'],
    ['watch.ts', 'impersonation.ts', 'sign-in.ts'],
    ['policy-set.ts'],
    ['origin.ts'],
    ['bundle-download.ts', 'input.ts', 'decision-headers.ts', 'path-equality.ts'],
    ['engine/index.ts'],
    ['engine/threads/'],
    ['engine/compile/', 'engine/evaluate/'],
    ['engine/bundle/'],
    ['engine/instance/'],
    ['engine/builtins/', 'engine/wasm/'],
    ['engine/graphql/', 'engine/json-schema/', 'engine/jwt/', 'engine/x509/'],
    ['engine/go/template/', 'engine/go/yaml/'],
    ['engine/go/fmt/', 'engine/go/time/'],
    ['engine/go/'],
    ['engine/values/'],
    ['engine/base/'],
  ],
  issuer: [
    ['api', 'maintenance'],
    ['protocol', 'sign-in', 'account', 'console'],
    ['interaction'],
    ['claims', 'pages', 'captcha', 'connectors', 'messages'],
    ['directory'],
    ['tokens'],
    ['base'],
  ],
  web: [
    [roof],
    ['console/pages', 'console/shell'],
    ['console/components'],
    ['console/api'],
    ['console/design', 'console/generated'],
  ],
  // The way of an event to its receiver.
  relay: [
    ['ingest.ts', 'lanes.ts'],
    ['lane-runner.ts'],
    ['lane-reader.ts', 'send.ts'],
    ['deliver.ts'],
    ['concurrency.ts', 'heartbeat.ts', 'recorder.ts', 'redact-response.ts', 'targets.ts'],
    ['attempt.ts', 'retry-schedule.ts', 'signature.ts'],
    ['failure-reasons.ts', 'logged-headers.ts'],
    ['ledger'],
  ],
}

const holdsSql = (file: string) =>
  /-store\.ts$/.test(file) ||
  [
    'outbox.ts',
    'publisher.ts',
    'reconcile.ts',
    'postgres-bus.ts',
    'notifier.ts',
    'database.ts',
    'shared-statement.ts',
  ].includes(basename(file)) ||
  file.startsWith('migrations/') ||
  // Starts and adopts the server itself: it asks it who it is before there is a database of ours.
  file.startsWith('platform/embedded-postgres')

const readsEnvironment = (file: string) =>
  ['main.ts', 'config.ts'].includes(basename(file)) ||
  file.startsWith('bin/') ||
  // What it shows to be pasted does.
  file === 'web/console/pages/applications/snippets.ts'

const mayUseExpress = (file: string) =>
  ['router.ts', 'mount.ts', 'app.ts'].includes(basename(file)) ||
  /-(router|endpoint)\.ts$/.test(file) ||
  file === 'gateway/express.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const notOurs = new Set(['node_modules', '.git', '.surrogate', 'dist', 'coverage'])

const walk = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (notOurs.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return walk(path)
    return entry.isFile() ? [relative(root, path).split(sep).join('/')] : []
  })

const files = walk(root)
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const tests = files.filter((file) => file.startsWith('test/') && file.endsWith('.ts'))
const sources = files.filter((file) => /\.tsx?$/.test(file) && Object.hasOwn(areas, file.split('/')[0]!))

/** Biome keeps one statement a line and quotes single, so comments and imports can be told by their beginnings. */
const codeOf = (file: string) =>
  textOf(file)
    .replace(/^\s*\/\*[\s\S]*?\*\//gm, '')
    .replace(/(^|\s)\/\/ .*$/gm, '')

interface Import {
  specifier: string
  typeOnly: boolean
}

const importPatterns = [
  /^import\s+(?<type>type\s+)?[\w$*{},\s]+?\s+from\s+'(?<specifier>[^']+)'/gm,
  /^export\s+(?<type>type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[\w$,\s]*\})\s+from\s+'(?<specifier>[^']+)'/gm,
  /^import\s+'(?<specifier>[^']+)'/gm,
  /\bimport\(\s*'(?<specifier>[^']+)'\s*\)/g,
  /\bmoduleUrl\(\s*'(?<specifier>[^']+)'/g,
]

const importsOf = (file: string): Import[] =>
  importPatterns.flatMap((pattern) =>
    [...codeOf(file).matchAll(pattern)].map(({ groups }) => ({
      specifier: groups!['specifier']!,
      typeOnly: groups!['type'] !== undefined,
    })),
  )

const imports = new Map(sources.map((file) => [file, importsOf(file)]))

const resolveOwn = (file: string, specifier: string) => {
  const path = join(dirname(file), specifier).split(sep).join('/')
  return /\.(tsx?|css)$/.test(path) || specifier.includes('.json') ? path : `${path}.ts`
}

const ownImports = (file: string, { atRunTime }: { atRunTime: boolean }) =>
  (imports.get(file) ?? [])
    .filter(({ specifier, typeOnly }) => specifier.startsWith('.') && !(atRunTime && typeOnly))
    .map(({ specifier }) => resolveOwn(file, specifier))

const linesMatching = (file: string, pattern: RegExp) =>
  codeOf(file)
    .split('\n')
    .filter((line) => pattern.test(line))
    .map((line) => `${file}: ${line.trim()}`)

/**
 * Of a file: the deepest room that it stands in, `base/` for a folder, `app.ts` for a file; the part itself when none
 * is named.
 */
const roomOf = (file: string, part: string, rooms: readonly string[]): string =>
  rooms
    .filter((room) => file === `${part}/${room}` || file.startsWith(`${part}/${room.replace(/\/?$/, '/')}`))
    .toSorted((one, other) => other.length - one.length)[0] ?? part

describe('who may import whom', () => {
  test('the scan sees what it must see', () => {
    expect(sources.length).toBeGreaterThan(50)
    // A static import, a type, and one that is made when it is needed.
    expect(ownImports('bin/surrogate.ts', { atRunTime: true })).toContain('bin/commands/start.ts')
    expect(ownImports('bin/cli/serve.ts', { atRunTime: true })).toContain('platform/lifecycle.ts')
    expect(imports.get('events/publisher.ts')).toContainEqual({ specifier: './bus.ts', typeOnly: true })
  })

  test('an area imports only the areas below it', () => {
    const forbidden = sources.flatMap((file) => {
      const area = file.split('/')[0]!
      return ownImports(file, { atRunTime: false })
        .map((target) => ({ target, to: target.split('/')[0]! }))
        .filter(({ to }) => to !== area && !areas[area]!.includes(to))
        .map(({ target }) => `${file} → ${target}`)
    })
    expect(forbidden).toEqual([])
  })

  test('every import of ours names a file that exists, with its extension', () => {
    const broken = sources.flatMap((file) =>
      ownImports(file, { atRunTime: false })
        .filter((target) => !files.includes(target))
        .map((target) => `${file} → ${target}`),
    )
    expect(broken).toEqual([])
  })

  test('nothing imports in a circle at run time', () => {
    const circles: string[] = []
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) return void circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
      if (done.has(file)) return
      for (const target of ownImports(file, { atRunTime: true })) visit(target, [...path, file])
      done.add(file)
    }
    for (const file of sources) visit(file, [])
    expect(circles).toEqual([])
  })

  test('a room imports only the rooms below it', () => {
    const forbidden = Object.entries(floors).flatMap(([part, rows]) => {
      const floorOf = (file: string) => {
        const room = roomOf(file, part, rows.flat())
        const row = rows.findIndex((rooms) => rooms.includes(room))
        return { room, row: row === -1 ? rows.findIndex((rooms) => rooms.includes(roof)) : row }
      }
      return sources
        .filter((file) => file.startsWith(`${part}/`))
        .flatMap((file) => {
          const from = floorOf(file)
          return ownImports(file, { atRunTime: false })
            .filter((target) => target.startsWith(`${part}/`))
            .filter((target) => {
              const to = floorOf(target)
              return to.room !== from.room && to.row <= from.row
            })
            .map((target) => `${file} → ${target}`)
        })
    })
    expect(forbidden).toEqual([])
  })

  test('the console is made of what browsers get, and of nothing else', () => {
    const packages = new Set(
      sources
        .filter((file) => file.startsWith('web/'))
        .flatMap((file) => imports.get(file)!.map(({ specifier }) => specifier))
        .filter((specifier) => !specifier.startsWith('.'))
        .map((specifier) =>
          specifier
            .split('/')
            .slice(0, specifier.startsWith('@') ? 2 : 1)
            .join('/'),
        ),
    )
    expect([...packages].toSorted()).toEqual([
      ...['autocomplete', 'commands', 'lang-javascript', 'language', 'lint', 'state', 'view'].map(
        (name) => `@codemirror/${name}`,
      ),
      '@lezer/highlight',
      '@tanstack/react-query',
      'react',
      'react-aria-components',
      'react-dom',
      'wouter',
    ])
  })

  test('the policy engine is reached through its index only', () => {
    const engine = 'policies/engine/'
    const past = sources
      .filter((file) => !file.startsWith(engine))
      .flatMap((file) =>
        ownImports(file, { atRunTime: false })
          .filter((target) => target.startsWith(engine) && target !== `${engine}index.ts`)
          .map((target) => `${file} → ${target}`),
      )
    expect(past).toEqual([])
  })

  test('no folders of a part import each other in a circle, types included', () => {
    const arrows = new Map<string, Set<string>>()
    for (const file of sources) {
      const from = dirname(file)
      for (const target of ownImports(file, { atRunTime: false })) {
        if (dirname(target) === from) continue
        arrows.set(from, (arrows.get(from) ?? new Set()).add(dirname(target)))
      }
    }
    const circles: string[] = []
    const done = new Set<string>()
    const visit = (folder: string, path: readonly string[]) => {
      if (path.includes(folder)) return void circles.push([...path.slice(path.indexOf(folder)), folder].join(' → '))
      if (done.has(folder)) return
      for (const target of arrows.get(folder) ?? []) visit(target, [...path, folder])
      done.add(folder)
    }
    for (const folder of arrows.keys()) visit(folder, [])
    expect(circles).toEqual([])
  })

  test('the gateway needs no database and no NATS client', () => {
    const reached = new Set<string>()
    const packages = new Set<string>()
    const visit = (file: string) => {
      if (reached.has(file)) return
      reached.add(file)
      for (const { specifier, typeOnly } of imports.get(file) ?? []) {
        if (typeOnly) continue
        if (specifier.startsWith('.')) visit(resolveOwn(file, specifier))
        else packages.add(specifier)
      }
    }
    for (const file of sources.filter((name) => name.startsWith('gateway/'))) visit(file)
    expect([...packages].filter((name) => /^(pg|knex|nats|@nats-io\/.*)$/.test(name))).toEqual([])
  })

  test('express is used only where HTTP is routed', () => {
    const users = sources.filter((file) => imports.get(file)!.some(({ specifier }) => specifier === 'express'))
    expect(users.filter((file) => !mayUseExpress(file))).toEqual([])
  })
})

describe('what stands where', () => {
  test('SQL stands only in stores, the ledger, the database module and migrations', () => {
    const statements =
      /\b(SELECT\s|INSERT\s+INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|DATABASE)\b|LISTEN\s+\w|NOTIFY\s+\w)/
    const builders = /\b(knex|trx|transaction)(<[^>]*>)?\(\s*['`]|\.raw\(|\b(knex|trx)\.(from|into|select|with)\(/
    const found = sources
      .filter((file) => !holdsSql(file))
      .flatMap((file) => [...linesMatching(file, statements), ...linesMatching(file, builders)])
    expect(found).toEqual([])
  })

  test('the environment is read only by main.ts, config.ts and the command line', () => {
    const found = sources
      .filter((file) => !readsEnvironment(file))
      .flatMap((file) => linesMatching(file, /\bprocess\.env\b|import\s*\{[^}]*\benv\b[^}]*\}\s*from 'node:process'/))
    expect(found).toEqual([])
  })

  test('threads are started by platform/worker-thread.ts, which keeps them from ending the process', () => {
    const found = sources
      .filter((file) => file !== 'platform/worker-thread.ts')
      .flatMap((file) => linesMatching(file, /\bnew Worker\(/))
    expect(found).toEqual([])
  })

  test('no folder is a drawer', () => {
    const drawers = new Set(['utils', 'util', 'helpers', 'common', 'types', 'misc', 'shared', 'lib'])
    expect(
      files.filter((file) =>
        dirname(file)
          .split('/')
          .some((name) => drawers.has(name)),
      ),
    ).toEqual([])
  })

  test('tests wait with patience: through test/support/until.ts or expect.poll', () => {
    const impatient = tests.filter((file) => file !== 'test/support/until.ts')
    expect(impatient.flatMap((file) => linesMatching(file, /\bvi\.wait(For|Until)\(/))).toEqual([])
  })

  test('what test files share does nothing on import: a worker loads it once, for many of them', () => {
    const shared = tests.filter((file) => !file.endsWith('.test.ts'))
    expect(shared.flatMap((file) => linesMatching(file, /^(before|after)(Each|All)\(/))).toEqual([])
  })

  test('decisions have one form: a number, a title, and what a reader looks for in this order', () => {
    const odd = files
      .filter((file) => file.startsWith('docs/decisions/'))
      .filter((file) => {
        const number = Number(basename(file).slice(0, 4))
        const parts = ['Context', 'Decision', 'Alternatives', 'Consequence'].map(
          (name) => `\\*\\*${name}\\.\\*\\*[\\s\\S]+`,
        )
        return !new RegExp(`^# ${number}\\. \\S.*\\n\\n${parts.join('^')}$`, 'm').test(textOf(file))
      })
    expect(odd).toEqual([])
  })

  test('the files that docs/architecture.md names exist', () => {
    const names = [...textOf('docs/architecture.md').matchAll(/`([\w./-]+\.(?:ts|rego|json|md))`/g)].map(
      ([, name]) => name ?? '',
    )
    expect(names.length).toBeGreaterThan(50)
    expect(names.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))).toEqual([])
  })

  test('comments are wrapped at the width of the formatter', () => {
    const tooLong = (line: string) => line.length > 120 && /^\s*(\/\/|\/?\*)/.test(line)
    const written = [...sources, ...tests].filter((file) => !file.includes('/generated/'))
    const found = written.filter((file) => textOf(file).split('\n').some(tooLong))
    expect(found).toEqual([])
  })

  test('no file knows the machine or the registry it was made with', () => {
    const machinePath = /(?<![\w.-])\/(work|home\/\w+|Users\/\w+|tmp\/(brief|bash_jobs))\//
    const registry = /"resolved":\s*"https?:|^\s*(@[\w-]+:)?registry\s*=/m
    const text = /\.(ts|cjs|mjs|js|json|md|ya?ml|rego|sh|txt|toml)$|(^|\/)(run|Dockerfile|\.npmrc|\.env\.example)$/
    const found = files
      .filter((file) => text.test(file))
      .filter((file) => {
        const content = textOf(file)
        return machinePath.test(content) || registry.test(content)
      })
    expect(found).toEqual([])
  })
})
