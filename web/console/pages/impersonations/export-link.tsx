import style from '../../components/button.module.css'
import { Icon } from '../../design/icon.tsx'

/** Signed lines of JSON, to give to the customer. */
export const ExportLink = ({ id }: { id: string }) => (
  <a
    className={`${style.button} ${style.quiet}`}
    href={`/console/impersonations/${encodeURIComponent(id)}/export`}
    download={`impersonation-${id}.ndjson`}
  >
    <Icon name="down" size={16} />
    Export
  </a>
)
