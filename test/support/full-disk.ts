import type pg from 'pg'

/**
 * A disk without room for more rows of this table: PostgreSQL refuses each insert as it does when it cannot extend the
 * file, and undoes the transaction. The count of refusals survives that.
 */
export const fillDisk = async (pool: pg.Pool, table: string) => {
  await pool.query(`
    CREATE SEQUENCE refusals_of_${table};
    CREATE FUNCTION refuse_${table}() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      PERFORM nextval('refusals_of_${table}');
      RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END $body$;
    CREATE TRIGGER disk_full BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_${table}();`)
  return {
    /** How often it was tried. */
    async refusals(): Promise<number> {
      const { rows } = await pool.query(
        `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS count FROM refusals_of_${table}`,
      )
      return rows[0].count
    },
    /** There is room again. */
    async free() {
      await pool.query(`DROP TRIGGER disk_full ON ${table}`)
    },
  }
}
