import { isolated } from '../../components/isolated.tsx'
import style from './named.module.css'

type Names = Readonly<Record<string, string>>

export const nameIn =
  (names: Names) =>
  (id: string): string =>
    names[id] ?? id

/** Somebody by their name with the id beside, or below where there is little room. */
export const Named = ({ id, names = {} }: { id: string; names?: Names | undefined }) => {
  const name = names[id]
  if (name === undefined) return <code>{id}</code>
  return (
    <span className={style.named}>
      {isolated(name)} <code>{id}</code>
    </span>
  )
}
