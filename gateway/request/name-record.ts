function NameRecord() {}
NameRecord.prototype = Object.freeze(Object.create(null))
const Made = NameRecord as unknown as new () => Record<string, never>

/**
 * An object whose names come from callers or configuration: it inherits nothing, so `constructor` and `__proto__` are
 * names like any other. Made by a constructor, since V8 keeps each object of `Object.create(null)` as a hash table.
 */
export const nameRecord = <Value>(): Record<string, Value> => new Made()
