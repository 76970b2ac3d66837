import { CopyButton } from '../../components/copy.tsx'

/** The same question to a gateway's own inspection listener; `$TOKEN` is for its audience. */
export const CopyInspectionCurl = ({
  path,
  query = {},
}: {
  path: string
  query?: Readonly<Record<string, string>>
}) => {
  const search = new URLSearchParams(query).toString()
  const isStream = path.endsWith('/stream')
  const text = `curl ${isStream ? '-N ' : ''}"$INSPECTION${path}${search && `?${search}`}" \\\n  -H "Authorization: Bearer $TOKEN"`
  return (
    <CopyButton text={text} label={`Copy as curl: ${path}`}>
      curl
    </CopyButton>
  )
}
