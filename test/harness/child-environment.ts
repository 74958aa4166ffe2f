import { tmpdir } from 'node:os'

/** A program under test gets no settings of the machine, only the compile cache. */
export const childEnvironment = (): Record<string, string> => {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
  return {
    PATH,
    HOME,
    TMPDIR: tmpdir(),
    ...(NODE_OPTIONS && { NODE_OPTIONS }),
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
  }
}
