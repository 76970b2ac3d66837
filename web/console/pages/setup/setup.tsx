export const Setup = () => null
