/** Test results in the XML that build servers read (the `testsuites` of JUnit). */
export interface TestReport {
  suite: string
  /** Where it is: a package or a file. */
  group: string
  name: string
  milliseconds: number
  outcome: 'passed' | 'failed' | 'skipped'
  /** Of a failed one. */
  message?: string
}

export const junitXml = (reports: readonly TestReport[]): string => {
  const suites = [...Map.groupBy(reports, ({ suite }) => suite)].map(([suite, tests]) => {
    const count = (outcome: TestReport['outcome']) => tests.filter((test) => test.outcome === outcome).length
    const seconds = tests.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000
    const attributes = `name="${escaped(suite)}" tests="${tests.length}" failures="${count('failed')}" skipped="${count('skipped')}"`
    return [`  <testsuite ${attributes} time="${seconds.toFixed(6)}">`, ...tests.map(testXml), '  </testsuite>'].join(
      '\n',
    )
  })
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', ...suites, '</testsuites>', ''].join('\n')
}

const testXml = ({ group, name, milliseconds, outcome, message = '' }: TestReport): string => {
  const open = `    <testcase classname="${escaped(group)}" name="${escaped(name)}" time="${(milliseconds / 1000).toFixed(6)}"`
  if (outcome === 'passed') return `${open}/>`
  const [first = ''] = message.split('\n', 1)
  const inside =
    outcome === 'skipped' ? '<skipped/>' : `<failure message="${escaped(first)}">${escaped(message)}</failure>`
  return `${open}>${inside}</testcase>`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }

/** XML 1.0 §2.2 has no place at all for most control characters. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"']/g, (character) => entities[character] ?? character)
