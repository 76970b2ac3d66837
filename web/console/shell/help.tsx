import { Dialog } from '../components/dialog.tsx'
import { type Key, useKeys } from '../components/keys.ts'
import style from './help.module.css'

/** The keys that do something on the page that is open. */
export const Help = ({ onClose }: { onClose(): void }) => {
  const keys = new Map(useKeys().map((key) => [key.keys, key]))
  const groups = Map.groupBy(keys.values(), ({ group = '' }) => group)
  return (
    <Dialog title="Keys of the keyboard" isOpen onClose={onClose}>
      <div className={style.groups}>
        {[...groups].map(([group, rows]) => (
          <section key={group} aria-label={group}>
            <h3>{group}</h3>
            <dl>{rows.map(row)}</dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}

const row = ({ keys, label }: Key) => (
  <div key={keys}>
    <dt>{keys.split(' ').map((key) => (key === 'then' ? ' then ' : <kbd key={key}>{key}</kbd>))}</dt>
    <dd>{label}</dd>
  </div>
)
