import { isRecord } from '#kernel/wire/json.ts'
import { chatFields, chatFieldsByComponent } from './chat-field-glossary.ts'
import * as glossary from './field-glossary.ts'
import { scheduleFields, scheduleFieldsByComponent } from './schedule-field-glossary.ts'

const byName = { ...scheduleFields, ...glossary.byName, ...chatFields }
const byComponent = {
  ...glossary.byComponent,
  ...chatFieldsByComponent,
  ...scheduleFieldsByComponent,
}

type Json = Record<string, unknown>

/**
 * The generic descriptions of decimals, units and times in the wire types. The description that belongs to the field's
 * name replaces them, followed by the suffix that is given here.
 */
const generic: Record<string, string> = {
  'Decimal text, never in exponent form': ' (decimal text)',
  'Smallest units of the token': '',
  'ISO-8601 UTC with milliseconds': ' (ISO-8601 UTC)',
}

export const glossaryText = (name: string): string | undefined => byComponent[`query.${name}`] ?? byName[name]

/** Completes the descriptions of all fields of the named schemas, in place. */
export function describeFields(schemas: Record<string, Json>): void {
  for (const [name, schema] of Object.entries(schemas)) describeWithin(name, schema)
}

function describeWithin(component: string, schema: Json): void {
  for (const [name, field] of Object.entries(isRecord(schema.properties) ? schema.properties : {})) {
    if (!isRecord(field)) continue
    describeField(component, name, field)
    describeWithin(component, field)
  }
  for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
    const arms = schema[keyword]
    if (Array.isArray(arms)) for (const arm of arms) if (isRecord(arm)) describeWithin(component, arm)
  }
  if (isRecord(schema.items)) describeWithin(component, schema.items)
}

/** Generators lose a description inside an `anyOf` branch, so it belongs to the field itself. */
function describeField(component: string, name: string, field: Json): void {
  if (field.$ref !== undefined) return
  const arms = Array.isArray(field.anyOf) ? field.anyOf.filter(isRecord) : []
  const own = [field, ...arms].map(({ description }) => description).find((text) => typeof text === 'string')
  for (const arm of arms) if (arm.$ref === undefined) delete arm.description
  const form = generic[String(own)]
  const known = byComponent[`${component}.${name}`] ?? byName[name]
  const isSpecific = own !== undefined && form === undefined
  const description = isSpecific || known === undefined ? own : `${known}${form ?? ''}`
  if (description !== undefined) field.description = description
}
