import { tmpdir } from 'node:os'

/** A program under test gets no settings of the machine, only the compile cache. */
export const childEnvironment = (): Record<string, string> => {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, HOME, TMPDIR: tmpdir(), ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) }
}

/** The same for a gateway and its world from the bundle of `scripts/bundle.ts`, where the run has made one. */
export const bundleEnvironment = (): Record<string, string> => {
  const { NODE_OPTIONS } = process.env
  return { ...childEnvironment(), ...(NODE_OPTIONS && { NODE_OPTIONS }) }
}
