import { useRef } from 'react'
import { useChange } from '../api/queries.ts'
import { Allowed } from './allowed.tsx'
import { Button } from './button.tsx'
import style from './fields.module.css'
import { ProblemNotice } from './notice.tsx'

interface PictureControlProps {
  common: { id: string; name: string; readOnly: boolean }
  label: string
  value: string
  onChange(value: string): void
}

/** The address of a picture: typed, or of one that is uploaded here. */
export const PictureControl = ({ common, label, value, onChange }: PictureControlProps) => {
  const file = useRef<HTMLInputElement>(null)
  const upload = useChange('createAsset')
  const send = async (picture: File) => {
    const bytes = new Uint8Array(await picture.arrayBuffer())
    const content = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    upload.mutate({ body: { content } }, { onSuccess: ({ url }) => onChange(url) })
  }
  return (
    <>
      <div className={style.line}>
        <input {...common} value={value} onChange={(event) => onChange(event.target.value)} />
        <input
          ref={file}
          hidden
          type="file"
          aria-label={`Upload: ${label}`}
          accept="image/png,image/jpeg,image/webp,image/gif,image/svg+xml"
          onChange={({ target }) => {
            const [picture] = target.files ?? []
            if (picture) void send(picture)
            target.value = ''
          }}
        />
        <Allowed operation="createAsset">
          <Button isPending={upload.isPending} onPress={() => file.current?.click()}>
            Upload
          </Button>
        </Allowed>
      </div>
      <ProblemNotice error={upload.error} />
    </>
  )
}
