/** Schemas made from the types that an upstream publishes, with which every answer of its local counterpart is compared. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ValidateFunction } from 'ajv'
import { createGenerator } from 'ts-json-schema-generator'

export const modules = join(import.meta.dirname, '..', '..', 'node_modules')

type Published<Name extends string> = {
  /** Package below node_modules. */
  name: string
  /** The import that `types` refer to. */
  importLine: (folder: string) => string
  types: Readonly<Record<Name, string>>
}

export function publishedTypes<Name extends string>({ name, importLine, types }: Published<Name>) {
  const folder = join(modules, name)
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  const cache = join(modules, '.cache', `${name.replaceAll(/[@/]/g, '-')}-${version}`)

  const generate = (): void => {
    mkdirSync(cache, { recursive: true })
    const source = join(cache, `types-${process.pid}.ts`)
    const aliases = Object.entries(types).map(([alias, type]) => `export type ${alias} = ${type}`)
    writeFileSync(source, [importLine(folder), ...aliases].join('\n'))
    const generator = createGenerator({
      path: source,
      type: '*',
      skipTypeCheck: true,
      additionalProperties: false,
      expose: 'none',
      topRef: false,
    })
    for (const alias of Object.keys(types)) {
      const draft = join(cache, `${alias}.${process.pid}`)
      writeFileSync(draft, JSON.stringify(generator.createSchema(alias)))
      renameSync(draft, join(cache, `${alias}.json`))
    }
    rmSync(source)
  }

  const ajv = new Ajv({ strict: false, allErrors: true })
  const compiled = new Map<Name, ValidateFunction>()
  const validatorOf = (alias: Name): ValidateFunction => {
    const known = compiled.get(alias)
    if (known) return known
    const path = join(cache, `${alias}.json`)
    if (!existsSync(path)) generate()
    const made = ajv.compile(JSON.parse(readFileSync(path, 'utf8')))
    compiled.set(alias, made)
    return made
  }

  /** The violations of the published type of this name by the value, as sentences. */
  return (alias: Name, value: unknown): string[] => {
    const validate = validatorOf(alias)
    if (validate(value)) return []
    return (validate.errors ?? [])
      .slice(0, 5)
      .map(
        ({ instancePath, message, params }) => `${alias}${instancePath} ${message} ${JSON.stringify(params)}`,
      )
  }
}
