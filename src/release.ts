import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The version of this release, from package.json. The OpenAPI document has a separate version for the interface. */
export const release = version
