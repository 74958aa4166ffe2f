import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The version of this release, from package.json. The interface has a version of its own in the OpenAPI document. */
export const release = version
