import { useSearchParams } from 'wouter'
import { EntityForm } from '../../components/entity-form.tsx'
import { Facts, Section } from '../../components/page.tsx'
import { withoutMasks, withStoredSecrets } from '../connectors/config-fields.ts'
import type { Connector } from '../connectors/kinds.ts'
import style from './messages.module.css'
import { exampleOf, templateFields, toTemplates, type Usage, usages, withTemplates } from './templates.ts'

/** The operator's words for each kind of message, with an example beside them. */
export const Texts = ({ connector, etag }: { connector: Connector; etag: string | undefined }) => {
  const [search, setSearch] = useSearchParams()
  const asked = search.get('for') ?? ''
  const usage = (asked in usages ? asked : 'Generic') as Usage
  const record = withTemplates(withoutMasks(connector))
  return (
    <>
      <div className={style.usage}>
        <span aria-hidden="true">For</span>
        <select
          aria-label="Kind of message"
          value={usage}
          onChange={({ target }) => setSearch({ for: target.value }, { replace: true })}
        >
          {Object.entries(usages).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
              {name in record.texts ? ' ·  yours' : ''}
            </option>
          ))}
        </select>
      </div>
      <EntityForm
        key={usage}
        {...{ name: usage, operation: 'updateConnector', params: { id: connector.id }, etag, record }}
        groups={{ [usages[usage]]: templateFields(usage, connector.type) }}
        bodyOf={({ texts }) => ({
          config: withStoredSecrets({ ...record.config, templates: toTemplates(texts) }, connector.config),
        })}
        beside={(typed) => <Example {...(typed as typeof record)} usage={usage} />}
      />
    </>
  )
}

const Example = ({ texts, usage }: { texts: Record<string, object>; usage: Usage }) => {
  const { subject, text } = exampleOf(texts[usage] ?? {})
  return (
    <Section title="Example">
      {text ? (
        <>
          {subject && <Facts facts={{ Subject: subject }} />}
          <p className={style.text}>{text}</p>
        </>
      ) : (
        <p>Our own words, in the language of whoever gets it.</p>
      )}
    </Section>
  )
}
