import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { policyCommand } from '../../bin/commands/policy.ts'
import { parseGatewayConfig } from '../../gateway/config/load.ts'
import { shippedPolicies } from '../../policies/decide.ts'
import { ruleFolder, writeFiles } from './rule-folder.ts'

const page = await readFile(new URL('../../docs/policies.md', import.meta.url), 'utf8')

interface Example {
  language: string
  text: string
}

/** The examples of each section: rules, tests, documents and cases that belong together. */
const sections = page.split(/^## /m).map((section) => ({
  title: section.split('\n', 1)[0]!,
  examples: [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(
    ([, language = '', text = '']): Example => ({ language, text }),
  ),
}))

const fileName = ({ language, text }: Example, index: number): string | undefined => {
  if (language === 'rego') return `rules/example_${index}${/^package \S+_test$/m.test(text) ? '_test' : ''}.rego`
  if (language !== 'yaml' || text.startsWith('# gateway.yaml') || text.startsWith('# with --config')) return undefined
  return text.startsWith('- name:') ? `cases/example_${index}.yaml` : `rules/data_${index}/data.yaml`
}

const withRules = sections.filter(({ examples }) => examples.some(({ language }) => language === 'rego'))

test('most sections have rules to copy', () => {
  expect(withRules.map(({ title }) => title)).toEqual([
    'The first rule',
    'The same handler by another spelling',
    'Rules about the body',
    'Rules for organizations',
    'Rules for whoever acts for somebody',
    'An entrypoint of your own',
    'Who may act for whom',
  ])
})

describe.each(withRules)('$title', ({ examples }) => {
  const files = examples.flatMap((example, index) => {
    const name = fileName(example, index)
    // Several documents of a section would be one file for its reader.
    return name === undefined ? [] : [[name.replace(/data_\d+\//, ''), example.text] as const]
  })
  const cases = files.filter(([name]) => name.startsWith('cases/'))

  test('compiles beside the shipped rules, has no mistakes, and does what it says', async () => {
    const folder = await ruleFolder({ 'cases/none.yaml': '[]' })
    await writeFiles(folder, Object.fromEntries(files))
    for (const name of ['gateway/decision.rego', 'impersonation.rego']) {
      await cp(join(shippedPolicies, name), join(folder, 'rules', name))
    }
    const lines: string[] = []
    const run = (...args: string[]) =>
      policyCommand([...args, '--path', join(folder, 'rules')], {
        say: (line) => lines.push(line),
        complain: (line) => lines.push(line),
      })
    expect(await run('check'), lines.join('\n')).toBe(0)
    expect(await run('test', '--cases', join(folder, 'cases'), '--coverage'), lines.join('\n')).toBe(0)
    const wanted = cases.reduce((sum, [, text]) => sum + text.split(/^- name:/m).length - 1, 0)
    expect(lines.join('\n')).toContain(`HTTP cases: ${wanted === 0 ? 'none' : `${wanted}/${wanted} passed`}`)
    // Every line of the rules that have cases is looked at by one of them.
    if (wanted > 0) {
      expect(
        lines.filter((line) => /^example_\d+\.rego/.test(line)).filter((line) => !line.includes('  100 %')),
      ).toEqual([])
    }
  })
})

test('misspelt input is found in a package of one of the readers, written as the page says', async () => {
  const { examples } = withRules.find(({ title }) => title === 'An entrypoint of your own')!
  const [rule] = examples.filter(({ language }) => language === 'rego')
  const folder = await ruleFolder({ 'checkout.rego': rule!.text.replaceAll('input.token', 'input.tokn') })
  const lines: string[] = []
  const say = (line: string) => lines.push(line)
  expect(await policyCommand(['check', '--path', folder], { say, complain: say })).toBe(1)
  expect(lines).toEqual([
    expect.stringMatching(/^checkout\.rego:\d+:\d+: undefined ref: input\.tokn/),
    expect.stringMatching(/^checkout\.rego:\d+:\d+: undefined ref: input\.tokn/),
    '2 mistakes',
  ])
})

test('settings of the gateway are ones that it takes', () => {
  const snippets = sections.flatMap(({ examples }) => examples).filter(({ text }) => text.startsWith('# gateway.yaml'))
  expect(snippets.length).toBeGreaterThan(2)
  for (const { text } of snippets) {
    const env = { BUNDLE_TOKEN: 'x' }
    // Public routes of the page have their reasons.
    expect(parseGatewayConfig(`version: 1\n${text}`, { file: '/etc/gateway.yaml', env }).policies.path).toBeDefined()
  }
})

test('commands that the page shows exist, with these options', async () => {
  const commands = [...page.matchAll(/^npm run surrogate -- policy (\w+)(.*?)(?: {2,}#.*)?$/gm)]
  expect(commands.length).toBeGreaterThan(7)
  for (const [, name = '', rest = ''] of commands) {
    const options = rest.match(/--[\w-]+/g) ?? []
    const said: string[] = []
    // An option that does not exist is wrong usage; so is the one after all of these.
    await policyCommand(
      [name, ...options.flatMap((option) => (flags.has(option) ? [option] : [option, 'x'])), '--nonsense'],
      {
        say: () => {},
        complain: (line) => said.push(line),
      },
    )
    expect(said[0]).toContain("Unknown option '--nonsense'")
  }
})

const flags = new Set(['--coverage', '--json'])
