import { tmpdir } from 'node:os'

/** Nothing of the machine's own settings reaches a program under test; it only finds what is compiled already. */
export const childEnvironment = (): Record<string, string> => {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, HOME, TMPDIR: tmpdir(), ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) }
}
