import { Link, useSearchParams } from 'wouter'
import { FilterBar } from '../../components/filters.tsx'
import { Badge, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { eventTypes } from '../../generated/events.ts'
import { listenersOf, useHooks } from './listeners.ts'

const categories = {
  interaction: 'Signing in',
  data: 'Changes',
  exception: 'What should not happen',
  impersonation: 'Acting for others',
} as const

/** Every kind of event, and how many hooks listen for it. */
export const Catalogue = () => {
  const [search, setSearch] = useSearchParams()
  const hooks = useHooks()
  const text = (search.get('q') ?? '').toLowerCase()
  const shown = eventTypes.filter(({ type, occurs }) => `${type} ${occurs}`.toLowerCase().includes(text))
  return (
    <>
      <FilterBar
        filters={[{ kind: 'search', name: 'q', label: 'Name or what happens' }]}
        search={search}
        onChange={setSearch}
      />
      {shown.length === 0 && <p>No event has that in its name or description.</p>}
      {Object.entries(categories).map(([category, title]) => {
        const rows = shown.filter((row) => row.category === category)
        if (rows.length === 0) return null
        return (
          <Section key={category} title={title}>
            <Rows
              title={title}
              empty=""
              rows={rows.map(({ type, occurs, named, planned }) => {
                const listening = hooks && listenersOf(hooks, type).length
                return {
                  key: type,
                  title: <Link href={`/events/types/${type}`}>{type}</Link>,
                  facts: `When ${occurs.replaceAll('`', '')}.`,
                  actions: (
                    <>
                      {planned && <Badge kind="warn">not sent yet</Badge>}
                      {named && <Badge>only by name</Badge>}
                      {listening !== undefined && listening > 0 && (
                        <Badge kind="good">
                          {listening} {listening === 1 ? 'hook' : 'hooks'}
                        </Badge>
                      )}
                    </>
                  ),
                }
              })}
            />
          </Section>
        )
      })}
    </>
  )
}
