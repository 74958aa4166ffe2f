/** Schemas of the published types of Relay's client, with which every answer of the solver is compared. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ValidateFunction } from 'ajv'
import { createGenerator } from 'ts-json-schema-generator'

const modules = join(import.meta.dirname, '..', '..', '..', 'node_modules')
const client = join(modules, '@relayprotocol', 'relay-sdk')
const { version } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8')) as { version: string }
const cache = join(modules, '.cache', `relay-types-${version}`)

const answer = (path: string, method: string, status = 200) =>
  `paths['${path}']['${method}']['responses']['${status}']['content']['application/json']`

const types = {
  Quote: answer('/quote/v2', 'post'),
  QuoteError: answer('/quote/v2', 'post', 400),
  Status: answer('/intents/status/v3', 'get'),
  Requests: answer('/requests/v3', 'get'),
  Chains: answer('/chains', 'get'),
  Currencies: answer('/currencies/v2', 'post'),
  TokenPrice: answer('/currencies/token/price', 'get'),
  Notified: answer('/transactions/index', 'post'),
} as const

export type PublishedType = keyof typeof types

const generate = (): void => {
  mkdirSync(cache, { recursive: true })
  const source = join(cache, `types-${process.pid}.ts`)
  const aliases = Object.entries(types).map(([name, type]) => `export type ${name} = ${type}`)
  const declarations = join(client, '_types', 'src', 'types', 'api')
  writeFileSync(source, [`import type { paths } from '${declarations}'`, ...aliases].join('\n'))
  const generator = createGenerator({
    path: source,
    type: '*',
    skipTypeCheck: true,
    additionalProperties: false,
    expose: 'none',
    topRef: false,
  })
  for (const name of Object.keys(types)) {
    const draft = join(cache, `${name}.${process.pid}`)
    writeFileSync(draft, JSON.stringify(generator.createSchema(name)))
    renameSync(draft, join(cache, `${name}.json`))
  }
  rmSync(source)
}

const ajv = new Ajv({ strict: false, allErrors: true })
const compiled = new Map<PublishedType, ValidateFunction>()

const validatorOf = (name: PublishedType): ValidateFunction => {
  const known = compiled.get(name)
  if (known) return known
  const path = join(cache, `${name}.json`)
  if (!existsSync(path)) generate()
  const made = ajv.compile(JSON.parse(readFileSync(path, 'utf8')))
  compiled.set(name, made)
  return made
}

/** The violations of the published type of this name by the value, as sentences. */
export const typeErrors = (name: PublishedType, value: unknown): string[] => {
  const validate = validatorOf(name)
  if (validate(value)) return []
  return (validate.errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`)
}
