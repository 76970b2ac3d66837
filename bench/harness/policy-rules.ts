import { copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Stage } from './stage.ts'

/**
 * A folder of rules with its documents, and edits of both as an editor or a deployment makes them: whole files, put in
 * place at once. Each edit leaves a mark that the gateway's route `/current/{mark}` asks for.
 */
export type RuleFolder = {
  path: string
  /** Puts another version in place; answers with its mark. */
  edit: (what: 'rules' | 'documents') => Promise<string>
}

/**
 * `slow` compares two texts of a megabyte place by place, which takes minutes. `fresh` reads what no two requests have
 * in common.
 */
const rules = `package bench

# METADATA
# entrypoint: true
decision := {"allow": data.plans[input.request.host] != "none"} if input.request.method == "GET"

# METADATA
# entrypoint: true
fresh := {"allow": data.plans[input.request.host] != "none"} if input.request.id != "none"

# METADATA
# entrypoint: true
slow := {"allow": contains(text, part)} if {
	text := concat("", ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | some _ in numbers.range(1, 20000)])
	part := concat("", [substring(text, 0, 300000), input.request.id])
}

# METADATA
# entrypoint: true
current := {"allow": input.route.params.mark == concat("-", [data.mark, version])}
`
const version = (number: number) => `package bench\n\nversion := "${number}"\n`

/** Of about 40 bytes each. */
const documents = (plans: number, mark: number): string =>
  JSON.stringify({
    mark: String(mark),
    plans: {
      '127.0.0.1': 'gold',
      ...Object.fromEntries(
        Array.from({ length: plans }, (_, index) => [`customer-${index}.example.test`, `plan-${index % 7}`]),
      ),
    },
  })

export const ruleFolder = async (stage: Stage, plans: number): Promise<RuleFolder> => {
  const path = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
  stage.onStop(() => rm(path, { recursive: true }))
  await writeFile(join(path, 'bench.rego'), rules)
  await writeFile(join(path, 'version.rego'), version(0))
  await writeFile(join(path, 'data.json'), documents(plans, 0))
  // Made beforehand and taken in turn, so that an edit costs no more than the copy of a file. The gateway looks at no
  // hidden file.
  const versions = [0, 1]
  for (const mark of versions) {
    await writeFile(join(path, `.rules-${mark}`), version(mark))
    await writeFile(join(path, `.documents-${mark}`), documents(plans, mark))
  }
  const marks = { documents: 0, rules: 0 }
  const files = { documents: 'data.json', rules: 'version.rego' }
  return {
    path,
    async edit(what) {
      marks[what] = 1 - marks[what]
      await copyFile(join(path, `.${what}-${marks[what]}`), join(path, '.next'))
      await rename(join(path, '.next'), join(path, files[what]))
      return `${marks.documents}-${marks.rules}`
    },
  }
}
