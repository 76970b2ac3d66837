export { type Form, onlyValue, parseForm, readForm } from '../../base/read-form.ts'
