import type { Why } from '../../api/gateways.ts'
import style from './why.module.css'

type ExplainedRule = NonNullable<Why['rules']>[number]

/** The rules that were asked, those that they asked below them: which held, and at which line the others stopped. */
export const Rules = ({ rules }: { rules: readonly ExplainedRule[] }) => (
  <ul className={style.rules}>
    {rules.map((rule, place) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a rule may be asked twice, and they never move
      <Rule key={place} rule={rule} />
    ))}
  </ul>
)

const Rule = ({ rule: { name, file, line, held, stopped, variables, times, rules } }: { rule: ExplainedRule }) => {
  const values = Object.entries(variables)
  return (
    <li>
      <p className={style.rule} data-held={held}>
        <span className={style.sign}>
          {held ? '+' : '−'}
          <span className={style.unseen}>{held ? ' held: ' : ' did not hold: '}</span>
        </span>
        <code>{name}</code>{' '}
        <span className={style.place}>
          {file}:{line}
          {times > 1 && `, ${times} times`}
        </span>
      </p>
      {stopped && (
        <p className={style.stopped}>
          stopped at line {stopped.line}: <code>{stopped.text}</code>
        </p>
      )}
      {values.length > 0 && (
        <dl className={style.variables}>
          {values.map(([variable, value]) => (
            <div key={variable}>
              <dt>
                <code>{variable}</code>
              </dt>
              <dd>
                <code>{JSON.stringify(value)}</code>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {rules.length > 0 && <Rules rules={rules} />}
    </li>
  )
}
