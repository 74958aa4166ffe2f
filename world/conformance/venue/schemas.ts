import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ValidateFunction } from 'ajv'
import { createGenerator } from 'ts-json-schema-generator'

const modules = join(import.meta.dirname, '..', '..', '..', 'node_modules')
const client = join(modules, '@nktkas', 'hyperliquid')

const version = (folder: string): string =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version

const cache = join(
  modules,
  '.cache',
  `venue-schemas-${version(client)}-${version(join(modules, 'ts-json-schema-generator'))}`,
)

type Area = 'reads' | 'exchange'

const folders: Record<Area, string> = { reads: '{info,subscription}', exchange: 'exchange' }

/** One program over all declarations; parsing takes seconds, so it runs only when a schema is missing. */
const generators = new Map<Area, ReturnType<typeof createGenerator>>()

const generate = (area: Area, type: string): string => {
  const generator =
    generators.get(area) ??
    createGenerator({
      path: join(client, 'esm', 'api', folders[area], '_methods', '*.d.ts'),
      type: '*',
      skipTypeCheck: true,
      additionalProperties: false,
      expose: 'none',
      topRef: false,
    })
  generators.set(area, generator)
  return JSON.stringify(generator.createSchema(type))
}

const schemaText = (area: Area, type: string): string => {
  const path = join(cache, `${area}-${type}.json`)
  if (existsSync(path)) return readFileSync(path, 'utf8')
  const text = generate(area, type)
  mkdirSync(cache, { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, text)
  renameSync(draft, path)
  return text
}

const ajv = new Ajv({ strict: false, allErrors: true })
const compiled = new Map<string, ValidateFunction>()

const validatorOf = (area: Area, type: string): ValidateFunction => {
  const known = compiled.get(`${area} ${type}`)
  if (known) return known
  const made = ajv.compile(JSON.parse(schemaText(area, type)))
  compiled.set(`${area} ${type}`, made)
  return made
}

/** The violations of the client's published type of this name by the value, as sentences. */
export const schemaErrors = (type: string, value: unknown, area: Area = 'reads'): string[] => {
  const validate = validatorOf(area, type)
  if (validate(value)) return []
  return (validate.errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message, params }) => `${type}${instancePath} ${message} ${JSON.stringify(params)}`)
}
