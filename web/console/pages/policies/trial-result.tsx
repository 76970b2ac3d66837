import { Link } from 'wouter'
import { CopyableText } from '../../components/copy.tsx'
import { Notice } from '../../components/notice.tsx'
import { Badge, Facts } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { Rules } from '../why/rules.tsx'
import type { TryAnswer } from './candidates.ts'
import style from './policies.module.css'

/** What became of candidates: whether they compile, their tests, what they say of an input, and what they change. */
export const TrialResult = ({ answer }: { answer: TryAnswer }) => {
  const { issues, warnings, missing, tests, evaluation, decisions } = answer
  return (
    <div className={style.result} role="status" aria-label="Result">
      {issues.length > 0 && (
        <Notice kind="bad">
          <strong>The rules do not compile.</strong>
          <Issues issues={issues} />
        </Notice>
      )}
      {missing.length > 0 && (
        <Notice kind="bad">Routes need {missing.join(', ')}: the gateway would not load these rules.</Notice>
      )}
      {warnings.length > 0 && (
        <Notice kind="warn">
          <strong>They compile, and this may be a mistake.</strong>
          <Issues issues={warnings} />
        </Notice>
      )}
      {tests && <Tests tests={tests} />}
      {evaluation && <Evaluation evaluation={evaluation} />}
      {decisions && <Decisions decisions={decisions} />}
    </div>
  )
}

const Issues = ({ issues }: { issues: TryAnswer['issues'] }) => (
  <ul>
    {issues.map(({ file, line, message }) => (
      <li key={`${file}:${line} ${message}`}>
        {file && (
          <code>
            {file}:{line}
          </code>
        )}{' '}
        {message}
      </li>
    ))}
  </ul>
)

const Tests = ({ tests: { passed, report, tests } }: { tests: NonNullable<TryAnswer['tests']> }) => {
  const failed = tests.filter(({ outcome }) => outcome === 'failed')
  const ran = tests.filter(({ outcome }) => outcome !== 'skipped').length
  if (passed)
    return (
      <Notice kind={ran === 0 ? 'info' : 'good'}>
        {ran === 0 ? 'There are no tests.' : ran === 1 ? 'The test passes.' : `All ${ran} tests pass.`}
      </Notice>
    )
  return (
    <>
      <Notice kind="bad">
        <strong>{failed.length === 0 ? 'The tests cannot be run.' : `${failed.length} of ${ran} tests fail.`}</strong>
        <Issues issues={failed.map(({ file, line, name }) => ({ file, line, message: name }))} />
      </Notice>
      <CopyableText label="test report" text={report} />
    </>
  )
}

const Evaluation = ({ evaluation }: { evaluation: NonNullable<TryAnswer['evaluation']> }) => {
  const { result, error, units, rules, erased = [], masked = [] } = evaluation
  const hidden = [...erased, ...masked]
  return (
    <>
      <h3>Result</h3>
      {error === undefined ? (
        <CopyableText label="result" text={result === undefined ? 'undefined' : JSON.stringify(result, null, 2)} />
      ) : (
        <Notice kind="bad">{error}</Notice>
      )}
      <Facts facts={{ Units: units.toLocaleString('en'), ...(hidden.length > 0 && { Masked: hidden.join(', ') }) }} />
      {rules && rules.length > 0 && <Rules rules={rules} />}
    </>
  )
}

type Summary = NonNullable<TryAnswer['decisions']>['changes'][number]['before']

const summaryText = ({ allow, reason, error }: Summary): string =>
  allow ? 'allowed' : ['denied', reason, error].filter((part) => part !== undefined).join(', ')

const Decisions = ({ decisions }: { decisions: NonNullable<TryAnswer['decisions']> }) => {
  const { found, compared, notComparable, notAsked, hidden, changes } = decisions
  const number = (count: number) => count.toLocaleString('en')
  return (
    <>
      <h3>The last decisions</h3>
      <Notice kind={changes.length === 0 ? 'good' : 'warn'}>
        <p>
          <strong>
            Of the last {number(compared)} decisions {changes.length === 0 ? 'none' : number(changes.length)}{' '}
            {changes.length <= 1 ? 'changes' : 'change'}.
          </strong>
        </p>
        {notComparable > 0 && (
          <p>
            {number(notComparable)} of {number(found)} could not be compared: the rules read {hidden.join(', ')}, which
            the gateway's masks take out of its records.
          </p>
        )}
        {notAsked > 0 && <p>{number(notAsked)} were not asked: it took too long.</p>}
      </Notice>
      {changes.length > 0 && (
        <Rows
          title="Decisions that change"
          empty=""
          rows={changes.slice(0, 100).map(({ request, route, method, path, before, after, timestamp }) => ({
            key: request,
            title: (
              <Link href={`/why/${encodeURIComponent(request)}`}>
                {method} {path}
              </Link>
            ),
            facts: (
              <>
                {route} · <time dateTime={timestamp}>{new Date(timestamp).toLocaleTimeString()}</time> ·{' '}
                <Badge kind={before.allow ? 'good' : 'bad'}>{summaryText(before)}</Badge> →{' '}
                <Badge kind={after.allow ? 'good' : 'bad'}>{summaryText(after)}</Badge>
              </>
            ),
          }))}
        />
      )}
      {changes.length > 100 && <p>The newest 100 are shown.</p>}
    </>
  )
}
