import { useSearchParams } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import type { Field } from '../../components/field.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { Notice } from '../../components/notice.tsx'
import { Loading, Page, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { configFields } from './config-fields.ts'
import { type Factory, useFactories } from './kinds.ts'

interface NewConnectorProps {
  title: string
  above: { title: string; path: string }
  /** The address of this page. */
  here: string
  types: readonly Factory['type'][]
  /** Of a kind, beside its configuration. */
  further?(factory: Factory): readonly Field[]
  /** What takes the place of something is said before. */
  warning?: string | undefined
  onDone(id: string): void
}

/** Chooses a kind, which stands in the address, then fills in what that kind needs. */
export const NewConnector = ({ title, above, here, types, further, warning, onDone }: NewConnectorProps) => {
  const [search] = useSearchParams()
  const factories = useFactories(types)
  if (!factories) return <Loading />
  const chosen = factories.find(({ id }) => id === search.get('kind'))
  if (!chosen)
    return (
      <Page title={title} above={above}>
        <KindList rows={factories} path={here} />
      </Page>
    )
  return (
    <Page title={`${title}: ${chosen.name}`} lead={chosen.description} above={{ title, path: here }}>
      <Section title="Configuration">
        {warning && <Notice kind="warn">{warning}</Notice>}
        <CreateForm
          key={chosen.id}
          name={`new ${chosen.id}`}
          operation="createConnector"
          fields={[...(further?.(chosen) ?? []), ...configFields(chosen.configSchema, true)]}
          initial={chosen.id === 'simple-mail-transfer-protocol' ? { 'config.requireTLS': true } : {}}
          bodyOf={(body) => ({ connectorId: chosen.id, ...body })}
          label={`Set up ${chosen.name}`}
          onDone={({ id }) => onDone(id)}
        />
      </Section>
    </Page>
  )
}

/** Kinds to choose from. */
export const KindList = ({
  rows,
  path,
}: {
  rows: readonly Pick<Factory, 'id' | 'name' | 'description'>[]
  path: string
}) => (
  <Section title="Which kind?">
    <Rows
      title="Kinds"
      empty="There is none."
      rows={rows.map(({ id, name, description }) => ({
        ...{ key: id, title: name, facts: description },
        actions: <LinkButton path={`${path}?kind=${encodeURIComponent(id)}`}>Choose {name}</LinkButton>,
      }))}
    />
  </Section>
)
