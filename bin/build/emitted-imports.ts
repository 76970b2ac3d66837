import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What a file of the built package needs, directly and through the files it imports. */
export interface ImportGraph {
  /** Paths in the package, the entry included. */
  files: Set<string>
  /** npm packages by name: `pg`, `@node-rs/argon2`. */
  packages: Set<string>
}

/**
 * Statements as the compiler prints them: each begins its line, and comments are kept, so other places do not count.
 */
const patterns = [
  /^(?:import|export)\b[^'"\n;]*(?:\{[^}]*\}[^'"\n;]*)?\bfrom\s+['"](?<specifier>[^'"]+)['"]/gm,
  /^import\s+['"](?<specifier>[^'"]+)['"]/gm,
  /^(?!\s*(?:\/\/|\*)).*?\b(?:import|moduleUrl)\(\s*['"](?<specifier>[^'"]+)['"]/gm,
]

const specifiersOf = (text: string): string[] =>
  patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(({ groups }) => groups!['specifier']!))

/**
 * Every relative specifier of a declaration names the source (`./a.ts`); a reader of the package has `./a.js` and
 * `./a.d.ts`.
 */
export const namingEmittedFiles = (declaration: string): string =>
  declaration.replace(/((?:\bfrom|\bimport\()\s*['"])(\.[^'"]*)\.ts(['"])/g, '$1$2.js$3')

/**
 * Follows the imports of `entries` through the package at `folder`: those of the JavaScript, or of the declarations
 * when an entry is one. Throws when an import names a file that is not there.
 */
export const importGraph = (folder: string, entries: readonly string[]): ImportGraph => {
  const graph: ImportGraph = { files: new Set(), packages: new Set() }
  const visit = (file: string) => {
    if (graph.files.has(file)) return
    graph.files.add(file)
    const extension = file.endsWith('.d.ts') ? '.d.ts' : '.js'
    for (const specifier of specifiersOf(readFileSync(join(folder, file), 'utf8'))) {
      if (specifier.startsWith('.')) visit(join(dirname(file), specifier.replace(/(\.js)?$/, extension)))
      else if (!specifier.startsWith('node:')) graph.packages.add(packageName(specifier))
    }
  }
  for (const entry of entries) visit(entry)
  return graph
}

const packageName = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
