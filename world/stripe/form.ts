import { invalid } from './errors.ts'

/** Bodies and queries in Stripe's form: `items[0][price]=price_1`, lists as `expand[]=a` or `expand[0]=a`. */

export type Form = string | Form[] | { [name: string]: Form }
export type Params = Record<string, Form>

/** What a parameter may be. An object lists its parameters; others are refused, as Stripe refuses them. */
export type Spec =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'map'
  | { list: Spec }
  | { fields: Readonly<Record<string, Spec>> }
export type Fields = Readonly<Record<string, Spec>>

const depthMax = 8
const pathOf = (name: string): string[] =>
  name
    .split('[')
    .map((part) => part.replace(/\]$/, ''))
    .slice(0, depthMax)

type Node = Map<string, Node | string>

function toForm(node: Node | string): Form {
  if (typeof node === 'string') return node
  const names = [...node.keys()]
  const values = [...node.values()].map(toForm)
  if (names.length > 0 && names.every((name) => /^\d+$/.test(name))) return values
  return Object.fromEntries(names.map((name, index) => [name, values[index] as Form]))
}

export function parseForm(text: string): Params {
  const root: Node = new Map()
  for (const [name, value] of new URLSearchParams(text)) {
    let node = root
    const path = pathOf(name)
    for (const part of path.slice(0, -1)) {
      const below = node.get(part)
      const next: Node = below instanceof Map ? below : new Map()
      node.set(part, next)
      node = next
    }
    const last = path.at(-1) ?? ''
    node.set(last === '' ? String(node.size) : last, value)
  }
  const form = toForm(root)
  return typeof form === 'string' || Array.isArray(form) ? {} : form
}

const wrong = (path: string, what: string) => invalid(`Invalid ${what}: ${path}`, { param: path })

function check(spec: Spec, value: Form, path: string): void {
  if (spec === 'text' || spec === 'integer' || spec === 'boolean') {
    if (typeof value !== 'string') throw wrong(path, 'string')
    if (spec === 'integer' && !/^-?\d{1,15}$/.test(value)) throw wrong(path, 'integer')
    if (spec === 'boolean' && !['true', 'false'].includes(value)) throw wrong(path, 'boolean')
  } else if (spec === 'map') {
    if (typeof value === 'string' || Array.isArray(value)) throw wrong(path, 'hash')
    for (const [name, text] of Object.entries(value))
      if (typeof text !== 'string' || name.length > 40 || text.length > 500)
        throw wrong(`${path}[${name}]`, 'metadata')
  } else if ('list' in spec) {
    if (!Array.isArray(value)) throw wrong(path, 'array')
    for (const [index, item] of value.entries()) check(spec.list, item, `${path}[${index}]`)
  } else {
    if (typeof value === 'string' || Array.isArray(value)) throw wrong(path, 'object')
    checkFields(spec.fields, value, path)
  }
}

function checkFields(fields: Fields, params: Params, path: string): void {
  for (const [name, value] of Object.entries(params)) {
    const full = path === '' ? name : `${path}[${name}]`
    const spec = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (spec === undefined)
      throw invalid(`Received unknown parameter: ${full}`, { code: 'parameter_unknown', param: full })
    check(spec, value, full)
  }
}

export const checkParams = (fields: Fields, params: Params): void =>
  checkFields({ ...fields, expand: { list: 'text' } }, params, '')

export const textOf = (params: Params, name: string): string | undefined => {
  const value = params[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
export const requiredText = (params: Params, name: string): string => {
  const text = textOf(params, name)
  if (text === undefined)
    throw invalid(`Missing required param: ${name}.`, { code: 'parameter_missing', param: name })
  return text
}
export const mapOf = (params: Params, name: string): Record<string, string> =>
  (params[name] ?? {}) as Record<string, string>
export const objectOf = (params: Params, name: string): Params | undefined =>
  params[name] as Params | undefined
export const listOf = (params: Params, name: string): Params[] => (params[name] ?? []) as Params[]
export const expandOf = (params: Params): string[] => (params.expand ?? []) as string[]
