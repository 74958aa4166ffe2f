import { propertySchema, type Schema, selectSchema } from '#kernel/contract/decimal-fields.ts'
import type { InputLocation, Issue } from '#kernel/contract/fault.ts'
import { decimalOfSource } from '#kernel/money/money.ts'
import { isRecord, type NumberSources } from '#kernel/wire/json.ts'
import type { IssueList } from './validation-issues.ts'

type NumberInput = {
  location: InputLocation
  schema: Schema
  value: unknown
  sources: NumberSources
}
/** A value, given as the object that holds it, its key, and its path from the root. */
type Place = { holder: object; key: string; path: Issue['path'] }

/**
 * Parsing to a double rounds: 1e-400 reads as 0 and 1.00000000000000000001 as 1, which are whole. If an integer
 * is expected the text decides, so that a number arrives exactly or is rejected.
 */
export function addRoundedIntegers(
  issues: IssueList,
  { location, schema, value, sources }: NumberInput,
): void {
  const visit = (given: Schema, item: unknown, { holder, key, path }: Place): void => {
    if (issues.isFull()) return
    const arm = selectSchema(given, item)
    if (!arm) return
    if (typeof item === 'number') {
      const source = sources.get(holder)?.get(key)
      const wantsInteger = [arm.type].flat().includes('integer') && Number.isInteger(item)
      if (wantsInteger && source !== undefined && isRounded(source, item))
        issues.add(notInteger(location, path))
    } else if (Array.isArray(item)) {
      const { items } = arm
      if (isRecord(items))
        for (const [index, each] of item.entries())
          visit(items, each, { holder: item, key: `${index}`, path: [...path, index] })
    } else if (isRecord(item)) {
      for (const [name, field] of Object.entries(item)) {
        const within = propertySchema(arm, name)
        if (within) visit(within, field, { holder: item, key: name, path: [...path, name] })
      }
    }
  }
  visit(schema, value, { holder: {}, key: '', path: [] })
}

/** Reading decimals costs the square of their length, and no integer needs this many characters. */
const sourceLengthMax = 200

const isRounded = (source: string, value: number): boolean =>
  /[.eE]/.test(source) && (source.length > sourceLengthMax || decimalOfSource(source) !== `${value}`)

const notInteger = (location: InputLocation, path: Issue['path']): Issue => ({
  location,
  path,
  msg: 'Input should be a valid integer: its digits would be rounded',
  type: 'int_parsing',
})
