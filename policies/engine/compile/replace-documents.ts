import type { Bundle, Compiled } from '../bundle/bundle.ts'
import { documentsOf } from '../bundle/documents.ts'
import { fingerprint, hashSources, type Sources } from './sources.ts'

/**
 * The bundle of a module and the JSON documents among `sources`: what the compiler makes of them. Throws `PolicyError`.
 */
export const withNewDocuments = ({ wasm, built }: Compiled, sources: Sources): Bundle => {
  const hashes = hashSources(sources)
  return { revision: fingerprint(hashes), wasm, data: documentsOf(sources), built: { ...built, sources: hashes } }
}
