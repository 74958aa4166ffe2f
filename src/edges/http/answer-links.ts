import { outlineOf } from '#invoke/schema-filter.ts'
import { type Schema, selectSchema } from '#kernel/contract/decimal-fields.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { linkTarget } from '#kernel/contract/operation-link.ts'
import { isRecord } from '#kernel/wire/json.ts'

type Fields = Record<string, unknown>
type PathOf = (fields: Fields) => string | undefined
/** Adds links to a value; the objects that get links are copied, because events are shared between streams. */
export type AddLinks = (value: unknown) => unknown
/** Reads a schema once; returns the function that adds its links, or undefined if the schema declares no link. */
export type LinksOf = (schema: Schema) => AddLinks | undefined

export function createLinks(operations: readonly Operation[], baseUrl: () => string): LinksOf {
  const paths = new Map(operations.map(({ name, entry }) => [name, entry.path]))
  const linksOf: LinksOf = (schema) =>
    armsOf(schema).length > 0 ? linksOfUnion(schema, linksOf) : linksOfValue(schema)

  const linksOfValue: LinksOf = (schema) => {
    if (isRecord(schema.items)) {
      const addToItem = linksOf(schema.items)
      return addToItem && ((value) => (Array.isArray(value) ? value.map(addToItem) : value))
    }
    const own: [string, PathOf][] = []
    const nested: [string, AddLinks][] = []
    for (const [name, field] of outlineOf(schema).declared) {
      if (field === true) continue
      const target = linkTarget(field)
      if (target !== undefined) own.push([name, pathOf(paths.get(target), target)])
      const addWithin = linksOf(field)
      if (addWithin) nested.push([name, addWithin])
    }
    if (own.length === 0 && nested.length === 0) return undefined
    return (value) => {
      if (!isRecord(value)) return value
      const shown = { ...value }
      for (const [name, addWithin] of nested) if (name in value) shown[name] = addWithin(value[name])
      for (const [name, fill] of own) {
        const path = fill(value)
        if (path !== undefined) shown[name] = baseUrl() + path
      }
      return shown
    }
  }
  return linksOf
}

const armsOf = (schema: Schema): Schema[] => {
  const arms = schema.anyOf ?? schema.oneOf
  return Array.isArray(arms) ? arms.filter(isRecord) : []
}

function linksOfUnion(schema: Schema, linksOf: LinksOf): AddLinks | undefined {
  const arms = armsOf(schema)
  const byArm = new Map<Schema, AddLinks>()
  for (const arm of arms) {
    const add = linksOf(arm)
    if (add) byArm.set(arm, add)
  }
  if (byArm.size === 0) return undefined
  const select = selectByTag(arms) ?? ((value: unknown) => selectSchema(schema, value))
  return (value) => {
    const arm = select(value)
    return (arm && byArm.get(arm)?.(value)) ?? value
  }
}

/** Returns a function that finds the arm of a union by its first constant field, without comparing schemas. */
function selectByTag(arms: readonly Schema[]): ((value: unknown) => Schema | undefined) | undefined {
  const tags = arms.map((arm) =>
    [...outlineOf(arm).declared].flatMap(([name, field]) => {
      const only = field === true ? undefined : onlyValueOf(field)
      return only === undefined ? [] : [{ name, only }]
    }),
  )
  const name = tags[0]?.[0]?.name
  if (name === undefined) return undefined
  const byTag = new Map<unknown, Schema>()
  for (const [index, arm] of arms.entries()) {
    const tag = tags[index]?.find((each) => each.name === name)
    if (!tag) return undefined
    byTag.set(tag.only, arm)
  }
  return (value) => (isRecord(value) ? byTag.get(value[name]) : undefined)
}

function onlyValueOf(schema: Schema): unknown {
  const values = schema.const === undefined ? schema.enum : [schema.const]
  return Array.isArray(values) && values.length === 1 ? values[0] : undefined
}

function pathOf(template: string | undefined, target: string): PathOf {
  if (template === undefined) throw new Error(`a link to ${target}, which this door does not serve`)
  // Literal text and names of parameters alternate in the parts of a path.
  const parts = template.split(/\{([^}]+)\}/)
  return (fields) => {
    let path = ''
    for (const [index, part] of parts.entries()) {
      if (index % 2 === 0) {
        path += part
        continue
      }
      const value = fields[part]
      if (typeof value !== 'string') return undefined
      path += encodeURIComponent(value)
    }
    return path
  }
}
